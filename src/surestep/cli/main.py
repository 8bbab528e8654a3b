"""The command `surestep`: its verbs, and how a mistake is told."""

from __future__ import annotations

import difflib
import sys
from importlib import import_module
from io import TextIOWrapper

import click

from surestep._version import __version__
from surestep.errors import SurestepError

# Each module holds one `command`; it is imported when its verb is asked for, or listed.
VERBS = {
    "improve": "surestep.cli.improve",
    "verify": "surestep.cli.verify",
    "explain": "surestep.cli.explain",
    "certify": "surestep.cli.certify",
    "rehearse": "surestep.cli.rehearse",
    "algorithms": "surestep.cli.algorithms",
    "bound": "surestep.cli.bound",
    "inspect": "surestep.cli.inspect",
    "count": "surestep.cli.count",
    "merge": "surestep.cli.merge",
    "run": "surestep.cli.run",
    "figure": "surestep.cli.figure",
}


class Mistake(click.ClickException):
    """Something the caller can act on: told in one line, with exit code 2."""

    exit_code = 2


class Verbs(click.Group):
    """A group of verbs in modules of their own, whose mistakes end with code 2, not a traceback."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The verbs, in their own order."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of the verb."""
        if cmd_name not in VERBS:
            return None
        command: click.Command = import_module(VERBS[cmd_name]).command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The verb and its arguments; an unknown verb is refused with the closest ones."""
        close = difflib.get_close_matches(args[0], VERBS)
        if args[0] not in VERBS and close:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {' or '.join(close)}?")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        """Runs the verb; characters that the terminal does not have are replaced."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            return super().invoke(ctx)
        except SurestepError as problem:
            raise Mistake(str(problem)) from None


@click.command(cls=Verbs, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="surestep")
def main() -> None:
    """Safe policy improvement: a better policy from a log of past decisions."""

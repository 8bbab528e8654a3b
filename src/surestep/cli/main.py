"""Defines the command `surestep`: finds its subcommands, and prints errors as one line."""

import os
import signal
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import TextIOWrapper
from traceback import walk_stack
from types import FrameType
from typing import Any, TextIO, cast

import click

from surestep._version import __version__
from surestep._words import floored, visible
from surestep.errors import SurestepError, speaking_of_options

# Subcommand → its module, which is imported when the subcommand is called or listed.
VERBS = {
    "describe": "logs",
    "improve": "improve",
    **dict.fromkeys(("verify", "explain", "certify"), "results"),
    **dict.fromkeys(("pilot", "watch"), "followup"),
    "rehearse": "improve",
    **dict.fromkeys(("algorithms", "bound"), "methods"),
    **dict.fromkeys(("inspect", "count", "merge"), "logs"),
    **dict.fromkeys(("run", "figure", "compare"), "experiments"),
}


# GB of addresses: `improve` of a small log takes 2.1 on two cores, and aborts at 1.2. The threads
# of every further core may reserve 64 MB and their stacks.
ROOM, ROOM_OF_CORE = 2.3, 0.1


class Mistake(click.ClickException):
    """An error that the user can mend: printed as one line, with exit code 2."""

    exit_code = 2


class Verbs(click.Group):
    """A group of subcommands in separate modules; errors of users end without a traceback."""

    def main(self, *args: Any, **settings: Any) -> Any:
        """Runs the command line; a signal, or a closed standard output, ends it with one line."""
        stdout = sys.stdout  # click replaces it by a stream that hides a closed pipe
        with signals_end() as came:
            try:
                try:
                    return super().main(*args, **settings)
                finally:
                    if stdout is not None:  # None if the caller closed it
                        stdout.flush()
            except BaseException as problem:
                doubt = isinstance(problem, OSError) or sys.stdout is not stdout
                broken = broken_output(stdout) if doubt else ""
                if not (came or broken):
                    raise
            # An error after a signal is a consequence of the signal.
            message, code = (told(came[0]), 128 + came[0]) if came else (broken, 2)
            with suppress(OSError):
                click.echo(f"Error: {message}", err=True)
            sys.exit(code)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Returns the names of the subcommands, in the order of VERBS."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Imports a subcommand; returns None for an unknown name."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"surestep.cli.{VERBS[cmd_name]}")
        return cast(click.Command, getattr(module, f"{cmd_name}_command"))

    def invoke(self, ctx: click.Context) -> object:
        """Runs the subcommand; characters that the terminal cannot show are replaced."""
        check_room()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):
                stream.reconfigure(errors="replace")
        try:
            with speaking_of_options(), warnings.catch_warnings():
                warnings.showwarning = print_note
                return super().invoke(ctx)
        except SurestepError as problem:
            raise Mistake(visible(str(problem))) from None
        except OSError as problem:
            if problem.filename is None:
                raise
            raise Mistake(visible(f"{problem.filename}: {problem.strerror}")) from None


def check_room() -> None:
    """Refuses a limit of addresses (ulimit -v) at which libraries end the process in C."""
    if sys.platform == "win32":
        return
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    room = ROOM + ROOM_OF_CORE * (os.cpu_count() or 1)
    if limit != resource.RLIM_INFINITY and limit < room * 1e9:
        raise Mistake(
            f"this process may have {floored(limit / 1e9, 3)} GB of addresses (ulimit -v), "
            f"expected {room:.1f} GB at least: with less, libraries end it without a word; to "
            "limit memory, give --memory-limit"
        )


def told(number: int) -> str:
    """Says how a signal ended the command."""
    return "interrupted" if number == signal.SIGINT else f"ended by {signal.Signals(number).name}"


def print_note(message: Warning | str, *where: object, **places: object) -> None:
    """Prints a warning as one line, without its place in the code."""
    click.echo(f"Note: {visible(str(message))}", err=True)


def broken_output(stdout: TextIO) -> str:
    """Says why standard output cannot be written, and redirects it to nothing; empty if it can."""
    try:
        stdout.write("\n")
        stdout.flush()
    except OSError as problem:
        with suppress(OSError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stdout.fileno())
        return f"standard output cannot be written: {problem.strerror}"
    return ""


@click.command(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
    no_args_is_help=True,
    subcommand_metavar="COMMAND [ARGS]...",
)
@click.version_option(__version__, message="surestep, version %(version)s")
def main() -> None:
    """Safe policy improvement: a better policy from a log of past decisions."""


main.commands = dict.fromkeys(VERBS, main)  # click suggests these for unknown names

# ---- signals that end a command: Ctrl-C, the end of the system, a terminal that closes ----------

SIGNALS = [one for one in signal.Signals if one.name in ("SIGINT", "SIGTERM", "SIGHUP")]
LATER = 0.1  # seconds
# Raised while DuckDB is imported, `Ended` would abort the process in its binding; in a callback of
# a weak reference, Python would print it as ignored, and go on.
DEAF = ("duckdb", "weakref", "_weakrefset")
PATIENCE = 1.0  # seconds in which a second signal is ignored: some senders send two


class Ended(BaseException):
    """Raised by a signal that ends the command; unwinding the stack undoes unfinished work."""


@contextmanager
def signals_end() -> Iterator[list[int]]:
    """Makes signals raise `Ended` inside the block; yields a list that gets the first signal.

    A second signal, a while later, ends the process at once. Leaves signals alone that the
    caller handles or ignores, as under `nohup`.
    """
    came: list[int] = []
    first = 0.0

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal first
        if any(one.f_globals.get("__name__") in DEAF for one, _ in walk_stack(frame)):
            threading.Timer(LATER, signal.raise_signal, [number]).start()
            return
        if not came:
            came.append(number)
            first = time.monotonic()
            raise Ended
        if time.monotonic() > first + PATIENCE:
            os._exit(128 + number)

    usual = (signal.SIG_DFL, signal.default_int_handler)
    here = SIGNALS if threading.current_thread() is threading.main_thread() else ()
    theirs = [number for number in here if signal.getsignal(number) in usual]
    before = {number: signal.signal(number, end) for number in theirs}
    try:
        yield came
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

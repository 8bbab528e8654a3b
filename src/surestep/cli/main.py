"""The command `surestep`: its help, its version, and the place where its verbs hang."""

from __future__ import annotations

import click

from surestep import __version__


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="surestep")
def main() -> None:
    """Safe policy improvement: a better policy from a log of past decisions.

    This release plans on known models, from Python: see README.md. Verbs that read logs, improve
    policies and certify them are added step by step.
    """

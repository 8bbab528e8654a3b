"""`surestep completion`: what a shell needs to complete verbs, options and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import click
from click.shell_completion import CompletionItem, get_completion_class

from surestep.cli.terminal import say

Names = Callable[[], Iterable[str]]
SHELLS = ("bash", "zsh", "fish")
OF_FILES = ("LOG", "COUNTS", "FILE", "POLICY", "TABLE")  # in the metavar of a parameter


@click.command("completion", short_help="Print what a shell needs to complete with Tab.")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script with which SHELL completes verbs, options and values when you press Tab.

    \b
    eval "$(surestep completion bash)"   # a line for ~/.bashrc
    eval "$(surestep completion zsh)"    # a line for ~/.zshrc
    surestep completion fish > ~/.config/fish/completions/surestep.fish
    """
    from surestep.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, "click completes in all of them"
    say(kind(main, {}, "surestep", "_SURESTEP_COMPLETE").source())


class Offered(click.ParamType[str]):
    """A text of which some words are known, and which else may be a file."""

    name = "text"

    def __init__(self, words: Names, files: bool) -> None:
        """Takes what tells the words, and whether files are offered where none of them fits."""
        self.words = words
        self.files = files

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Returns the words that begin so; else the shell may look for files."""
        fitting = [CompletionItem(word) for word in self.words() if word.startswith(incomplete)]
        return fitting or ([CompletionItem(incomplete, type="file")] if self.files else [])


def offer_values(command: click.Command) -> None:
    """Makes the texts of a command known to shells: names that there are, and files."""
    for parameter in command.params:
        if parameter.type is click.STRING:
            parts = (parameter.metavar or "").removesuffix("...").split("|")
            words = partial(filter, str.islower, parts)
            names = NAMED.get(parameter.opts[-1]) or NAMED.get(f"{command.name} {parameter.name}")
            files = any(part in OF_FILES for part in parts)
            parameter.type = Offered(names or words, files)


def algorithms() -> Iterable[str]:
    """Returns the names of the algorithms."""
    from surestep.algorithms import ALGORITHMS

    return ALGORITHMS


def environments() -> Iterable[str]:
    """Returns the names of the environments."""
    from surestep.environments import ENVIRONMENTS

    return ENVIRONMENTS


def kinds() -> Iterable[str]:
    """Returns the names of the kinds of certificates."""
    from surestep.certificates import CERTIFIERS

    return CERTIFIERS


def experiments() -> Iterable[str]:
    """Returns the names of the experiments in the catalog."""
    from surestep.experiments import catalog

    return catalog()


NAMED: dict[str, Names] = {
    "--algorithm": algorithms,
    "--against": algorithms,
    "--environment": environments,
    "--kind": kinds,
    "algorithms name": algorithms,
    "run name": experiments,
    "figure name": experiments,
    "compare name": experiments,
}

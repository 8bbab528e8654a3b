"""`surestep completion`: what a shell needs to complete verbs, options and their values."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

import click
from click.shell_completion import CompletionItem, get_completion_class

from surestep.cli.terminal import say

Names = Callable[[], Iterable[str]]
SHELLS = ("bash", "zsh", "fish")
# As click's own, which in these two lose what stands before the value in `--option=value`, and in
# fish all of a help behind its first comma. What is answered to them is click's.
OWN = {
    "zsh": """\
#compdef surestep

_surestep_completion() {
    local -a answer alone helped
    local kind word told
    (( $+commands[surestep] )) || return 1
    answer=("${(@f)$(COMP_WORDS="${words[*]}" COMP_CWORD=$((CURRENT-1)) \\
        _SURESTEP_COMPLETE=zsh_complete surestep)}")
    compset -P '--*='
    for kind word told in "${answer[@]}"; do
        case $kind in
            file) _path_files -f ;;
            dir) _path_files -/ ;;
            plain) if [[ $told == _ ]]; then alone+=("$word"); else helped+=("$word:$told"); fi ;;
        esac
    done
    (( $#helped )) && _describe -V unsorted helped
    (( $#alone )) && compadd -V unsorted -a alone
}

if [[ $zsh_eval_context[-1] == loadautofunc ]]; then
    _surestep_completion "$@"  # a file in $fpath
else
    compdef _surestep_completion surestep
fi
""",
    "fish": """\
function _surestep_completion
    set -l option (string match --regex -- '^--[^=]*=' (commandline --current-token))
    set -l answer (COMP_WORDS=(commandline --cut-at-cursor --current-process) \\
        COMP_CWORD=(commandline --current-token) _SURESTEP_COMPLETE=fish_complete surestep)
    for line in $answer
        set -l parts (string split --max 1 , -- $line)
        switch $parts[1]
            case file
                string join \\n -- "$option"(__fish_complete_path $parts[2])
            case dir
                string join \\n -- "$option"(__fish_complete_directories $parts[2])
            case plain
                echo -- "$option$parts[2]"
        end
    end
end

complete --no-files --command surestep --arguments "(_surestep_completion)"
""",
}
OF_FILES = ("LOG", "COUNTS", "FILE", "POLICY", "TABLE")  # in the metavar of a parameter


@click.command("completion", short_help="Print what a shell needs to complete with Tab.")
@click.argument("shell", type=click.Choice(SHELLS))
def command(shell: str) -> None:
    """Print the script with which SHELL completes verbs, options and values when you press Tab.

    \b
    eval "$(surestep completion bash)"   # a line for ~/.bashrc
    eval "$(surestep completion zsh)"    # a line for ~/.zshrc, below compinit
    surestep completion fish > ~/.config/fish/completions/surestep.fish
    """
    from surestep.cli.main import main

    kind = get_completion_class(shell)
    assert kind is not None, "click completes in all of them"
    say(OWN.get(shell) or kind(main, {}, "surestep", "_SURESTEP_COMPLETE").source())


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

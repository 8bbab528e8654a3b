"""`surestep explain`: why a saved policy does what it does in one state."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from surestep.cli import options
from surestep.cli.terminal import say_json, terminal, visible

if TYPE_CHECKING:
    from surestep.pipeline import Explanation


@click.command("explain", short_help="Explain why a policy does what it does in a state.")
@click.argument("output", type=click.Path(path_type=Path))
@click.option(
    "--state",
    "given",
    multiple=True,
    required=True,
    metavar="LABEL|COLUMN=VALUE",
    help="The state; once for each of its columns.",
)
@options.json_instead
def command(output: Path, given: tuple[str, ...], as_json: bool) -> None:
    """Explain why the policy saved in OUTPUT does what it does in a state.

    Raw values are binned as in the log.
    Where a state has several columns, give one after the other, or each with its name.

    \b
    surestep explain result --state ward-3
    surestep explain result --state ward=3 --state age=47
    """
    from surestep.pipeline import explain
    from surestep.results import load

    result = load(output)
    explanation = explain(result, state_of(given, result.table.vocabulary.state_columns))
    if as_json:
        actions = [reason._asdict() for reason in explanation.actions]
        say_json({**dataclasses.asdict(explanation), "actions": actions})
    else:
        print_explanation(explanation)


def state_of(given: tuple[str, ...], columns: tuple[str, ...]) -> dict[str, str] | tuple[str, ...]:
    """Returns the state as a row where columns are named, else as labels in order."""
    parts = [text.partition("=") for text in given]
    named = [(name, value) for name, equals, value in parts if equals and name in columns]
    if 0 < len(named) < len(given):
        raise click.UsageError("give every --state with its column (COLUMN=VALUE), or none of them")
    return dict(named) or given


def print_explanation(explanation: Explanation) -> None:
    """Prints the actions side by side, then what decides between them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from surestep._words import Scale, number
    from surestep.pipeline import in_words

    console = terminal(highlight=False)
    named = zip(explanation.state_columns, explanation.called, strict=True)
    state = ", ".join(f"{column} {visible(label)}" for column, label in named)
    console.print(Text(state, style="bold"))
    if explanation.actions:
        table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
        for column in explanation.action_columns:
            table.add_column(Text(column), overflow="fold")
        before = "before,\nestimated" if explanation.behavior_is_estimated else "before"
        seen = [reason for reason in explanation.actions if reason.visits]
        values = Scale.of((reason.q for reason in seen), digits=5)
        gains = Scale.of((reason.advantage for reason in seen), digits=4)
        value, better = f"value,\nestimated{values.unit}", f"better\nby{gains.unit}"
        for heading in (before, "new", "visits", value, better):
            table.add_column(heading, justify="right", no_wrap=True)
        table.add_column("visits\nto go", justify="right")
        untried = explanation.untried if len(explanation.untried) > 1 else ()
        for reason in explanation.actions:
            if reason not in untried:
                more = "" if reason.more_visits is None else f"{reason.more_visits:,}"
                table.add_row(
                    *(Text(visible(label)) for label in reason.called),
                    number(reason.behavior),
                    number(reason.probability),
                    f"{reason.visits:,}",
                    values.number(reason.q) if reason.visits else "unknown",
                    gains.signed(reason.advantage) if reason.visits else "",
                    "not allowed" if reason.allowed is False else more,
                )
        if untried:
            before_all = number(sum(action.behavior for action in untried))
            after_all = number(sum(action.probability for action in untried))
            name = [f"{len(untried):,} others", *[""] * (len(explanation.action_columns) - 1)]
            table.add_row(*name, before_all, after_all, "never", "unknown")
        console.print(table)
    for sentence in in_words(explanation):
        console.print(Text(visible(sentence)))

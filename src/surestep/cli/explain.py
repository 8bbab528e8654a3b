"""`surestep explain`: why a saved policy does what it does in one state."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

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
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of text.")
def command(output: Path, given: tuple[str, ...], as_json: bool) -> None:
    """Explain why the policy saved in OUTPUT does what it does in a state.

    Raw values are binned as in the log. Where a state has several columns, give one after the
    other, or each with its name.

    \b
    surestep explain result --state ward-3
    surestep explain result --state ward=3 --state age=47
    """
    from surestep.pipeline import explain
    from surestep.results import load

    result = load(output)
    columns = result.table.vocabulary.state_columns
    explanation = explain(result, state_of(given, columns))
    if as_json:
        content = dataclasses.asdict(explanation)
        content["actions"] = [reason._asdict() for reason in explanation.actions]
        say_json(content)
        return
    print_explanation(explanation)


def state_of(given: tuple[str, ...], columns: tuple[str, ...]) -> dict[str, str] | tuple[str, ...]:
    """Returns the state as a row where columns are named, else as labels in order."""
    parts = [text.partition("=") for text in given]
    if all(equals and name in columns for name, equals, _ in parts):
        return {name: value for name, _, value in parts}
    if any(equals and name in columns for name, equals, _ in parts):
        raise click.UsageError("give every --state with its column (COLUMN=VALUE), or none of them")
    return given


def print_explanation(explanation: Explanation) -> None:
    """Prints the actions side by side, then what decides between them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table
    from rich.text import Text

    from surestep.pipeline import in_words

    console = terminal(highlight=False)
    named = zip(explanation.state_columns, explanation.state, strict=True)
    console.print(
        Text(", ".join(f"{column} {visible(label)}" for column, label in named), style="bold")
    )
    if explanation.actions:
        table = Table(box=SIMPLE_HEAD, pad_edge=False)
        for column in explanation.action_columns:
            table.add_column(Text(column))
        before = "before\n(estimated)" if explanation.behavior_is_estimated else "before"
        for heading in (before, "new", "visits", "estimated\nvalue", "better than\nbefore by"):
            table.add_column(heading, justify="right")
        table.add_column("")
        for reason in explanation.actions:
            changed = abs(reason.probability - reason.behavior) > 1e-12
            table.add_row(
                *(Text(visible(label)) for label in reason.action),
                f"{reason.behavior:.4g}",
                Text(f"{reason.probability:.4g}", style="bold" if changed else ""),
                f"{reason.visits:,}",
                f"{reason.q:.6g}" if reason.visits else "unknown",
                f"{reason.advantage:+.4g}" if reason.visits else "",
                ""
                if reason.more_visits is None
                else f"kept: {reason.more_visits:,} more visits to go",
            )
        console.print(table)
    for sentence in in_words(explanation):
        console.print(Text(visible(sentence)))

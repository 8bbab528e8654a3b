"""Defines the commands for methods: `algorithms` lists them, `bound` converts ζ and visits."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from surestep._words import floored, number
from surestep.cli import options
from surestep.cli.terminal import say, say_json, show, terminal
from surestep.sections import Column, Section, Table, numbers

if TYPE_CHECKING:
    from surestep.bounds import BoundAnswer


@click.command("algorithms", short_help="List the algorithms: settings, promises, source.")
@click.argument("name", required=False)
@options.json_instead
def algorithms_command(name: str | None, as_json: bool) -> None:
    """List the algorithms with their settings, promises and source; or only the one called NAME."""
    from surestep.algorithms.registry import SHELF, describe_algorithms

    entries = describe_algorithms(name)
    say(*(SHELF.broken() if name is None else ()), err=True)
    if as_json:
        say_json([entry._asdict() for entry in entries])
        return
    from rich.padding import Padding

    console = terminal(highlight=False)
    for entry in entries:
        console.print(f"[bold]{entry.name}[/]  {', '.join(entry.settings) or 'no settings'}")
        extension = SHELF.source_of(entry.name)
        lines = [
            entry.summary,
            *([f"always: {entry.constraint}"] if entry.constraint else []),
            *(f"promises: {promise}" for promise in entry.promises),
            f"[dim]{f'by extension {extension}: ' if extension else ''}{entry.source}[/]",
        ]
        console.print(Padding("\n".join(lines), (0, 0, 1, 4)))


@click.command(
    "bound", short_help="Show the ζ that N visits buy, and the visits that a loss of ζ takes."
)
@click.option("--states", type=int, required=True, help="|S|, the number of states.")
@click.option("--actions", type=int, required=True, help="|A|, the most actions of a state.")
@click.option("--discount", type=float, required=True, help="γ, inside (0, 1).")
@click.option("--value-bound", type=float, help="V_max: values lie within ± V_max.")
@click.option("--values", type=(float, float), metavar="LOW HIGH", help="Values lie between these.")
@click.option("--delta", type=float, default=0.1, help="δ, inside (0, 1).")
@click.option("--visits", type=int, help="Ask for the ζ that this many visits of each pair buy.")
@click.option("--zeta", type=float, help="Ask for the visits that this loss ζ takes.")
@click.option("--gain", type=float, default=0.0, help="In the estimated MDP; ζ falls by it.")
@click.option("--branching", type=int, help="The most successors of a pair, where you know it.")
@options.json_instead
def bound_command(as_json: bool, **asked: Any) -> None:
    """Show the ζ that N visits buy, and the visits that a loss of ζ takes, for every bound.

    A bound says: with probability 1 − δ the improved policy is worse than the behavior policy by at
    most ζ, if it changes only pairs with more than N visits. Ask with --visits, --zeta, or both.

    \b
    surestep bound --states 25 --actions 4 --discount 0.95 --value-bound 1 --visits 100
    surestep bound --states 25 --actions 4 --discount 0.95 --value-bound 1 --zeta 0.1
    """
    from surestep.bounds import ProblemSize, compare_bounds
    from surestep.bounds.loss import value_span

    visits, zeta = asked["visits"], asked["zeta"]
    value_bound, values = asked.pop("value_bound"), asked.pop("values")
    if visits is None and zeta is None:
        raise click.UsageError("Nothing is asked: give --visits, --zeta, or both.")
    if (values is None) == (value_bound is None):
        raise click.UsageError("Give either --value-bound or --values LOW HIGH.")
    asked["value_bounds"] = bounds = values or (-value_bound, value_bound)
    known = {name: asked[name] for name in ("states", "actions", "delta", "discount", "branching")}
    answers = compare_bounds(
        ProblemSize(**known), bounds, visits=visits, wanted_zeta=zeta, gain=asked["gain"]
    )
    span = value_span(bounds)
    if as_json:
        say_json(
            {"asked": asked, "span": span, "answers": [answer._asdict() for answer in answers]}
        )
        return
    show([bounds_section(answers, span, asked)])


def bounds_section(
    answers: "Sequence[BoundAnswer]", span: float, asked: Mapping[str, Any]
) -> Section:
    """Compares the bounds in a table, and says clearly which of them guarantee nothing."""
    visits, zeta = asked["visits"], asked["zeta"]
    columns = [*map(Column, ("bound", "covers", "standing"))]
    captions = list[str]()
    rows = [[answer.method, answer.covers, answer.standing] for answer in answers]
    sentences = [
        f"With probability {1 - asked['delta']:g} the improved policy is worse than the current "
        "one by at most ζ, if it changes only pairs with more visits than that (spi: if every pair "
        "has them)."
    ]
    if visits is not None:
        columns += [*numbers("ζ"), Column("says")]
        captions.append(f"ζ of {visits:,} visits")
        rows = [[*row, *says(answer)] for row, answer in zip(rows, answers, strict=True)]
    if zeta is not None:
        columns += numbers("visits")
        captions.append(f"visits for ζ = {zeta:g}")
        rows = [
            [*row, "–" if answer.n_wedge is None else f"{answer.n_wedge:,}"]
            for row, answer in zip(rows, answers, strict=True)
        ]
    if any("NOTHING" in row for row in rows):
        sentences.append(f"NOTHING: values span {span:g}, so no policy can be worse by more.")
    if zeta is not None and zeta >= span:
        sentences.append(f"ζ = {zeta:g} guarantees NOTHING: values span {span:g}.")
    for refusal in sorted({answer.refusal for answer in answers if answer.refusal is not None}):
        refused = [answer.method for answer in answers if answer.refusal == refusal]
        sentences.append(f"No answer from {', '.join(refused)}: {refusal}.")
    captions.append("as-published: the papers' own claim, with known gaps (docs/bounds.md)")
    return Section(
        "bounds",
        "Bounds",
        sentences,
        tables=[Table("bounds", "; ".join(captions), columns, rows)],
    )


def says(answer: "BoundAnswer") -> list[str]:
    """Returns the cells of ζ and of its meaning."""
    if answer.zeta is None:
        return ["–", ""]
    meaning = "limits loss" if answer.zeta >= 0 else "claims gain"
    return [number(0.0 - floored(-answer.zeta)), "NOTHING" if answer.says_nothing else meaning]

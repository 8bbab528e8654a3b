"""`surestep bound`: what N visits buy, and how many visits a loss of ζ takes, for every bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surestep.cli.terminal import say_json, terminal
from surestep.sections import Column, Section, Table, numbers

if TYPE_CHECKING:
    from surestep.bounds import BoundAnswer


@click.command(
    "bound", short_help="Show the ζ that N visits buy, and the visits that a loss of ζ takes."
)
@click.option("--states", type=int, required=True, help="|S|, the number of states.")
@click.option("--actions", type=int, required=True, help="|A|, the most actions of a state.")
@click.option("--discount", type=float, required=True, help="γ, inside (0, 1).")
@click.option("--value-bound", type=float, help="V_max: values lie within ± V_max.")
@click.option(
    "--values", type=(float, float), metavar="LOW HIGH", help="Values lie from LOW to HIGH."
)
@click.option("--delta", type=float, default=0.1, show_default=True, help="δ, inside (0, 1).")
@click.option("--visits", type=int, help="Ask for the ζ that this many visits of each pair buy.")
@click.option("--zeta", type=float, help="Ask for the visits that this loss ζ takes.")
@click.option(
    "--gain", type=float, default=0.0, help="The gain in the estimated MDP; ζ falls by it."
)
@click.option(
    "--branching",
    type=int,
    help="The most successors of a pair, where you know it; bounds about splits ignore it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
def command(
    states: int,
    actions: int,
    discount: float,
    value_bound: float | None,
    values: tuple[float, float] | None,
    delta: float,
    visits: int | None,
    zeta: float | None,
    gain: float,
    branching: int | None,
    as_json: bool,
) -> None:
    """Show the ζ that N visits buy, and the visits that a loss of ζ takes, for every bound.

    A bound says: with probability 1 − δ the improved policy is worse than the behavior policy by at
    most ζ, if it changes only pairs with more than N visits. Ask with --visits, --zeta, or both.

    \b
    surestep bound --states 25 --actions 4 --discount 0.95 --value-bound 1 --visits 100
    surestep bound --states 25 --actions 4 --discount 0.95 --value-bound 1 --zeta 0.1
    """
    from surestep.bounds import ProblemSize, compare_bounds, value_span

    if visits is None and zeta is None:
        raise click.UsageError("Nothing is asked: give --visits, --zeta, or both.")
    if values is not None and value_bound is None:
        value_bounds = values
    elif values is None and value_bound is not None:
        value_bounds = (-value_bound, value_bound)
    else:
        raise click.UsageError("Give either --value-bound or --values LOW HIGH.")
    size = ProblemSize(states, actions, delta, discount=discount, branching=branching)
    answers = compare_bounds(size, value_bounds, visits=visits, wanted_zeta=zeta, gain=gain)
    asked = {
        "states": states,
        "actions": actions,
        "discount": discount,
        "value_bounds": value_bounds,
        "delta": delta,
        "gain": gain,
        "branching": branching,
        "visits": visits,
        "zeta": zeta,
    }
    span = value_span(value_bounds)
    if as_json:
        content = [answer._asdict() for answer in answers]
        say_json({"asked": asked, "span": span, "answers": content})
        return

    from surestep.report.terminal import print_sections

    section = bounds_section(answers, span, delta, visits, zeta)
    print_sections([section], terminal(highlight=False))


def bounds_section(
    answers: tuple[BoundAnswer, ...],
    span: float,
    delta: float,
    visits: int | None,
    zeta: float | None,
) -> Section:
    """Returns the bounds side by side, and what they mean: loudly where that is nothing."""
    from surestep._words import number

    says = {
        answer.method: "" if answer.zeta is None
        else "NOTHING" if answer.says_nothing
        else "limits loss" if answer.zeta >= 0 else "claims gain"
        for answer in answers
    }  # fmt: skip
    columns = [*map(Column, ("bound", "covers", "standing"))]
    columns += [*numbers("ζ"), Column("says")] if visits is not None else []
    columns += numbers("visits") if zeta is not None else []
    rows = []
    for answer in answers:
        loss = "–" if answer.zeta is None else number(answer.zeta)
        wanted = "–" if answer.n_wedge is None else f"{answer.n_wedge:,}"
        row = [answer.method, answer.covers, answer.standing]
        row += [loss, says[answer.method]] if visits is not None else []
        rows.append([*row, wanted] if zeta is not None else row)
    sentences = [
        f"With probability {1 - delta:g} the improved policy is worse than the current one by at "
        "most ζ, if it changes only pairs with more visits than that (spi: if every pair has them)."
    ]
    if "NOTHING" in says.values():
        sentences.append(f"NOTHING: values span {span:g}, so no policy can be worse by more.")
    if zeta is not None and zeta >= span:
        sentences.append(f"ζ = {zeta:g} guarantees NOTHING: values span {span:g}.")
    for refusal in sorted({answer.refusal for answer in answers if answer.refusal is not None}):
        refused = [answer.method for answer in answers if answer.refusal == refusal]
        sentences.append(f"No answer from {', '.join(refused)}: {refusal}.")
    asked = [f"ζ of {visits:,} visits"] if visits is not None else []
    asked += [f"visits for ζ = {zeta:g}"] if zeta is not None else []
    known = "as-published: the papers' own claim, with known gaps (docs/bounds.md)"
    caption = "; ".join([*asked, known])
    return Section("bounds", "Bounds", sentences, tables=[Table("bounds", caption, columns, rows)])

"""`surestep bound`: what N visits buy, and how many visits a loss of ζ takes, for every bound."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from surestep.cli.terminal import say_json, terminal

if TYPE_CHECKING:
    from rich.console import Console

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

    console = terminal()
    print_table(console, answers, visits, zeta)
    print_meaning(console, answers, span, delta, zeta)


def print_table(
    console: Console, answers: tuple[BoundAnswer, ...], visits: int | None, zeta: float | None
) -> None:
    """Prints the bounds side by side."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from surestep._words import number

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for heading in ("bound", "covers", "standing"):
        table.add_column(heading, no_wrap=True)
    if visits is not None:
        table.add_column(f"ζ of {visits:,}\nvisits", justify="right")
        table.add_column("says", no_wrap=True)
    if zeta is not None:
        table.add_column(f"visits for\nζ = {zeta:g}", justify="right")
    for answer in answers:
        cells = [answer.method, answer.covers, answer.standing]
        if visits is not None:
            cells += ["–" if answer.zeta is None else number(answer.zeta), verdict(answer)]
        if zeta is not None:
            cells.append("–" if answer.n_wedge is None else f"{answer.n_wedge:,}")
        table.add_row(*cells)
    console.print(table)


def verdict(answer: BoundAnswer) -> str:
    """Returns what a ζ says in two words, loudly where that is nothing."""
    if answer.zeta is None:
        return ""
    if answer.says_nothing:
        return "[bold red]NOTHING[/]"
    return "limits loss" if answer.zeta >= 0 else "claims gain"


def print_meaning(
    console: Console,
    answers: tuple[BoundAnswer, ...],
    span: float,
    delta: float,
    zeta: float | None,
) -> None:
    """Prints what the numbers mean, and loudly where they mean nothing."""
    console.print(
        f"A bound claims: with probability {1 - delta:g} the improved policy is worse than the "
        "behavior policy by at most ζ, if it changes only pairs with more visits than that (spi: "
        "if every pair has them)."
    )
    if any(answer.says_nothing for answer in answers):
        console.print(
            f"[bold red]NOTHING[/]: values span {span:g}, so no policy can be worse by more. A ζ "
            f"of {span:g} or above guarantees nothing."
        )
    if zeta is not None and zeta >= span:
        console.print(
            f"[bold red]ζ = {zeta:g} guarantees NOTHING[/]: values span {span:g}, so every policy "
            "meets it without any data."
        )
    for refusal in sorted({answer.refusal for answer in answers if answer.refusal is not None}):
        refused = [answer.method for answer in answers if answer.refusal == refusal]
        console.print(f"No answer from {', '.join(refused)}: {refusal}.")
    console.print(
        "[dim]as-published: the papers' own claim, with known gaps. row: the radius bounds the L1 "
        "error of a row. split: it is about one split of the transformed model, which is less. "
        "See docs/bounds.md.[/]"
    )

"""The options that say what an improvement is made of, for all verbs that improve."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click


class NWedge(click.ParamType[int | str]):
    """A whole number, or `auto`."""

    name = "integer|auto"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> int | str:
        """Reads a whole number, or `auto`."""
        if value == "auto":
            return "auto"
        try:
            return int(value)
        except ValueError:
            self.fail(f"{value!r} is neither a whole number nor 'auto'", param, ctx)


NAMES = (
    *("discount", "behavior", "algorithm", "settings", "n_wedge", "zeta", "least_visits"),
    *("delta", "value_bounds", "reward_bounds", "reward_at_end", "return_bounds", "unseen"),
    *("states", "actions", "certificates", "train_share", "logger"),
)
SOURCES = ("behavior", "states", "actions")  # of these, what the log does not hold
OPTIONS = (
    click.option(
        "--discount",
        type=float,
        required=True,
        help="γ, from 0 to 1: how much the next step counts.",
    ),
    click.option(
        "--behavior",
        metavar="POLICY|estimate|propensities",
        help="The policy that made the log: a table of state, action, probability; the "
        "propensities in the log; or an estimate from it.  [default: propensities, else estimate]",
    ),
    click.option(
        "--algorithm",
        metavar="NAME",
        help="The algorithm, one of `surestep algorithms`.  [default: spibb]",
    ),
    click.option(
        "--setting",
        "settings",
        multiple=True,
        metavar="NAME=VALUE",
        help="A setting of the algorithm, such as epsilon=0.1.",
    ),
    click.option(
        "--n-wedge",
        type=NWedge(),
        help="N∧: pairs visited at most this often keep their probability. `auto` takes the one "
        "with the largest lower bound.  [default: auto]",
    ),
    click.option(
        "--zeta",
        type=float,
        help="Choose the N∧ at which SPIBB's bound claims a loss of at most ζ.",
    ),
    click.option(
        "--least-visits",
        type=int,
        metavar="N",
        help="Pairs visited less often keep their probability, whatever the algorithm; an "
        "--n-wedge that is given holds instead.  [default: 10]",
    ),
    click.option(
        "--delta", type=float, help="δ: the chance that the claim is wrong.  [default: 0.1]"
    ),
    click.option(
        "--value-bounds",
        type=(float, float),
        metavar="LOW HIGH",
        help="Every value lies between these.  [default: what the rewards observed allow]",
    ),
    click.option(
        "--reward-bounds",
        type=(float, float),
        metavar="LOW HIGH",
        help="Every reward lies between these.  [default: those observed]",
    ),
    click.option(
        "--reward-at-end",
        type=(float, float),
        metavar="LOW HIGH",
        help="Episodes pay only once, at their end, a reward between these; values lie there too.",
    ),
    click.option(
        "--return-bounds",
        type=(float, float),
        metavar="LOW HIGH",
        help="Every episode returns between these, and so does its rest from any step on, unless "
        "that is 0.",
    ),
    click.option(
        "--unseen",
        type=click.Choice(["pessimistic", "terminal"]),
        help="The value of a pair that was never tried: the lower value bound (pessimistic), or 0 "
        "(terminal).  [default: pessimistic]",
    ),
    click.option(
        "--states",
        metavar="FILE",
        help="A file with all states that there are, where the log shows fewer.",
    ),
    click.option("--actions", metavar="FILE", help="A file with all actions that there are."),
    click.option(
        "--kind",
        "certificates",
        multiple=True,
        metavar="KIND[:SETTING=VALUE,...]",
        help="A certificate to make, such as robust:set=l1; the result stands by the first.  "
        "[default: stitched, posterior, robust, a-priori; of counts robust, a-priori]",
    ),
    click.option(
        "--train-share",
        type=float,
        help="The share of the log that chooses the policy; the rest judges it.  [default: 0.3]",
    ),
    click.option(
        "--logger",
        type=click.Choice(["adaptive", "fixed"]),
        help="adaptive: whoever made the log may have learnt on the way, so its first part chooses "
        "the policy; fixed: a part drawn at random does.  [default: adaptive]",
    ),
)


def term_options(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the options; the command is given `terms`, ready for `surestep.improve`."""

    @wraps(command)
    def with_terms(**options: Any) -> None:
        terms = {name: options.pop(name) for name in NAMES}
        terms["settings"] = read_settings(terms["settings"])
        terms["certificates"] = terms["certificates"] or None
        command(terms=terms, **options)

    decorated: Callable[..., None] = with_terms
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


def read_settings(given: tuple[str, ...]) -> dict[str, object]:
    """Reads settings as numbers where they are some, else as words."""
    settings: dict[str, object] = {}
    for setting in given:
        name, equals, text = setting.partition("=")
        if not equals or not name:
            raise click.UsageError(f"--setting is {setting!r}, expected NAME=VALUE")
        settings[name.strip().replace("-", "_")] = read_value(text.strip())
    return settings


def read_value(text: str) -> object:
    """Reads a whole number, a number, or a word."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text

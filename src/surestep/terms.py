"""The terms of an improvement, each declared once.

A declaration says what a value looks like and within which limits, what is taken where nobody says
anything, and the words of its option. All else follows from it: the options of the command line
(`surestep.cli.options`), the checks (`surestep.pipeline.terms`), the parameters of run.json and
their types (`surestep.results.record`), how they are read back, and the command that makes a result
again (`surestep.pipeline.recording`). A new term is a field of `Declared`, a parameter of
`surestep.improve`, and whatever uses it.

Nothing is imported here that takes its time: `surestep --help` reads it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from surestep.declaring import (
    AlgorithmName,
    AlgorithmSettings,
    Bounds,
    Choice,
    Number,
    Term,
    Text,
    Texts,
    Whole,
    declared,
)

if TYPE_CHECKING:
    from surestep.algorithms import Algorithm
    from surestep.certificates import Certifier
    from surestep.certificates.episodes import Logger
    from surestep.model.problem import UnseenRule

AUTO: Literal["auto"] = "auto"
DEFAULT_ALGORITHM = "spibb"
DEFAULT_LEAST_VISITS = 10
DEFAULT_DELTA = 0.1
DEFAULT_UNSEEN: UnseenRule = "pessimistic"
# The first is the one that a result stands by. It is settled before the data.
DEFAULT_CERTIFICATES = ("stitched", "posterior", "robust")
DEFAULT_OF_COUNTS = ("robust",)  # counts cannot be split into two parts
# The share of a log that chooses the policy: of up to so many episodes, and from so many on.
SMALL_LOG, LARGE_LOG = (100, 0.5), (500, 0.3)
DEFAULT_LOGGER: Logger = "adaptive"


# ---- the terms --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Declared:
    """The terms of an improvement, as a user gave them; None where nothing was said."""

    discount: float = field(
        metadata=declared(
            shape=Number((0, 1)),
            required=True,
            help="γ, from 0 to 1: how much the next step counts.",
        )
    )
    algorithm: str | Algorithm | None = field(  # a name, or settings
        default=None,
        metadata=declared(
            shape=AlgorithmName(),
            default=DEFAULT_ALGORITHM,
            metavar="NAME",
            help="The algorithm, one of `surestep algorithms`. Where none is named, provable is a "
            "candidate too.",
        ),
    )
    n_wedge: int | Literal["auto"] | None = field(
        default=None,
        metadata=declared(
            shape=Whole(or_auto=True),
            by_default=AUTO,
            void=True,
            label="N∧",
            help="N∧: pairs visited at most this often keep their probability. `auto` takes the "
            "one with the largest lower bound.",
        ),
    )
    zeta: float | None = field(
        default=None,
        metadata=declared(
            shape=Number(),
            help="Choose the N∧ at which SPIBB's bound claims a loss of at most ζ.",
        ),
    )
    settings: Mapping[str, Any] = field(  # of a named algorithm
        default_factory=dict,
        metadata=declared(
            shape=AlgorithmSettings(),
            option="--setting",
            metavar="NAME=VALUE",
            help="A setting of the algorithm, such as epsilon=0.1.",
        ),
    )
    least_visits: int | None = field(
        default=None,
        metadata=declared(
            shape=Whole(1, "what was seen less often stays"),
            default=DEFAULT_LEAST_VISITS,
            void=True,
            metavar="N",
            label="least visits of what may change",
            help="Pairs visited less often are not taken more often than before, whatever the "
            "algorithm; an --n-wedge that is given holds instead.",
        ),
    )
    delta: float | None = field(
        default=None,
        metadata=declared(
            shape=Number((0, 1), open=True),
            default=DEFAULT_DELTA,
            label="δ",
            help="δ: the chance that the claim is wrong.",
        ),
    )
    running: tuple[float, float] | None = field(
        default=None,
        metadata=declared(
            shape=Bounds(),
            by_default="as seen in the log; 0 if only --ending is given",
            void=True,
            label="rewards of running steps",
            help="A step after which the episode goes on earns between these.",
        ),
    )
    ending: tuple[float, float] | None = field(
        default=None,
        metadata=declared(
            shape=Bounds(),
            by_default="as seen in the log; 0 if only --running is given",
            void=True,
            label="rewards of ends",
            help="A step that ends its episode earns between these.",
        ),
    )
    returns: tuple[float, float] | None = field(  # of whole episodes
        default=None,
        metadata=declared(
            shape=Bounds(),
            help="Every episode returns between these, and so does its rest from any step on, "
            "unless that is 0.",
        ),
    )
    unseen: UnseenRule | None = field(
        default=None,
        metadata=declared(
            shape=Choice(("pessimistic", "terminal")),
            default=DEFAULT_UNSEEN,
            label="worth of what nobody tried",
            help="The value of a pair that was never tried: the lower value bound (pessimistic), "
            "or 0 (terminal).",
        ),
    )
    certificates: Sequence[str | Certifier] | None = field(  # the one to stand by first
        default=None,
        metadata=declared(
            shape=Texts(),
            by_default=f"{', '.join(DEFAULT_CERTIFICATES)}; of counts "
            f"{', '.join(DEFAULT_OF_COUNTS)}",
            option="--kind",
            metavar="KIND[:SETTING=VALUE,...]",
            help="A certificate to make, such as robust:set=l1; the result stands by the first.",
        ),
    )
    train_share: float | None = field(  # of the log, which chooses the policy; the rest judges it
        default=None,
        metadata=declared(
            shape=Number(
                (0, 1),
                open=True,
                why="that part chooses the policy, and the rest judges it; 0 is for a policy that "
                "was made without this log",
            ),
            by_default="0.5 of up to 100 episodes, falling to 0.3 of 500 and more",
            void=True,
            label="share of the log that chooses the policy",
            help="The share of the log that chooses the policy; the rest judges it.",
        ),
    )
    logger: Logger | None = field(  # whether whoever made the log may have learnt on the way
        default=None,
        metadata=declared(
            shape=Choice(("adaptive", "fixed")),
            default=DEFAULT_LOGGER,
            void=True,
            help="adaptive: whoever made the log may have learnt on the way, so its first part "
            "chooses the policy; fixed: a part drawn at random does.",
        ),
    )
    worlds: int | None = field(  # of each kind in the stress test; 0: none
        default=None,
        metadata=declared(
            shape=Whole(),
            by_default="10, or what δ needs, as far as that takes about a quarter of a minute of "
            "one core; beyond, only those that say how often beliefs are wrong",
            label="worlds of each kind in the stress test",
            help="The number of worlds of each kind in the stress test; 0: none.",
        ),
    )
    labels: Any = field(  # rules, files of them, or names by column and value
        default=None,
        metadata=declared(
            shape=Texts(),
            option="--label",
            metavar="COLUMN=VALUE:NAME,...|FILE",
            help="What people call the values of a column, on the page and the screen: "
            "iv_fluid=0:none,1:low; or a table of column, value, name.",
        ),
    )


TERMS: dict[str, Term] = {field.name: field.metadata["term"] for field in fields(Declared)}

# What an improvement takes beside the log, and is no term: read and recorded as evidence.
SOURCES: dict[str, Term] = {
    "behavior": Term(
        shape=Text(),
        by_default="propensities, else estimate",
        metavar="POLICY|uniform|estimate|propensities|row-propensities",
        label="behavior policy",
        help="The policy that made the log: a table of state, action, probability; uniform, where "
        "a randomised trial took all actions alike; the propensities in the log, of its states or "
        "where they vary there of its rows; or an estimate from it.",
    ),
    "states": Term(
        shape=Text(),
        metavar="FILE",
        help="A file with all states that there are, where the log shows fewer.",
    ),
    "actions": Term(shape=Text(), metavar="FILE", help="A file with all actions that there are."),
    "possible": Term(
        shape=Text(),
        metavar="seen|FILE",
        help="What can be done in a state: `seen`, nothing is recommended there that the log does "
        "not show there; or a table of state, action with all pairs that there are.  "
        "[default: every action in every state]",
    ),
    "allowed": Term(
        shape=Text(),
        metavar="FILE",
        help="Limits: a table of state, action with the pairs that may be recommended; no other "
        "is taken more often than before.",
    ),
}


def usual_train_share(episodes: int) -> float:
    """Returns the share of so many episodes that chooses the policy, where nobody says another.

    Between a small log and a large one it falls with the logarithm. A single episode, which is
    split by its steps, counts as a large log.

    >>> [usual_train_share(episodes) for episodes in (50, 100, 300, 500, 50_000)]
    [0.5, 0.5, 0.36, 0.3, 0.3]
    """
    (few, most), (many, least) = SMALL_LOG, LARGE_LOG
    if episodes <= 1:
        return least
    large = math.log(max(episodes, few) / few) / math.log(many / few)
    return round(max(least, most - (most - least) * large), 2)


def label_of(name: str) -> str:
    """Returns what a parameter is called on the screen."""
    term = TERMS.get(name) or SOURCES.get(name)
    return term.label or name if term else name

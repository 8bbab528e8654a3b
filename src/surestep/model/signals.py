"""Further numbers than the one that is improved: what must not get worse, what must not happen.

A further signal is a problem of its own, over the same steps, pairs and policy, with other rewards;
a cost has them with a minus. So whatever is known of one signal, planning and claims, holds for
each of them.

To reach unsafe states is such a signal, too: the episode is over there and pays −1, all steps pay
nothing, nothing is discounted, and only the first N steps count. Its ρ is minus the chance to get
there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, NamedTuple

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._arrays import BoolArray
from surestep._reprs import short_repr
from surestep._settings import check_setting
from surestep.errors import InvalidParameter
from surestep.model.counts import Counts, LoggedRewards
from surestep.model.known import Known

if TYPE_CHECKING:
    from surestep.model.problem import Problem

NEVER_TO_ALWAYS = (-1.0, 0.0)  # minus a chance
NOTHING_KNOWN = Known()


class Reach(NamedTuple):
    """The states that are not to be reached."""

    states: BoolArray  # [S]
    within: int | None = None  # steps; None: before the episode ends
    alone: bool = False  # claims are of the chance under π_I itself, not of what it adds to π_b's


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Signal:
    """A number that must not get worse than before by more than its margin.

    `known` are the facts of its rewards that certificates need. Of a chance to reach unsafe states,
    `at_most` is a limit that somebody gave; None: no more than before, and its margin.
    """

    name: str
    problem: Problem
    margin: float = 0.0
    cost: bool = False  # people see it with the other sign
    at_most: float | None = None
    known: Known = NOTHING_KNOWN

    __repr__ = short_repr("name", "margin", "cost", "at_most", "problem.num_states")

    def __post_init__(self) -> None:
        """Refuses a margin that is none, and signals of signals."""
        check_setting(f"the margin of {self.name!r}", self.margin, Annotated[float, Meta(ge=0)])
        if self.problem.signals:
            raise InvalidParameter(f"the signal {self.name!r} has signals, expected none")

    @property
    def is_chance(self) -> bool:
        """Tells whether it is the chance to reach unsafe states."""
        return self.problem.reach is not None

    def moved(self, change: Callable[[Problem], Problem]) -> Signal:
        """Returns the signal of a part of the data, or under other numbers."""
        return replace(self, problem=change(self.problem))


def reaching(problem: Problem, reach: Reach) -> Problem:
    """Returns the problem of the chance to `reach` states, by the data of another one."""
    return arrays.altered(
        problem,
        discount=1.0,
        value_bounds=NEVER_TO_ALWAYS,
        unseen="pessimistic",
        signals=(),
        reach=reach._replace(states=arrays.freeze(reach.states)),
    )


def stopped(problem: Problem) -> Problem:
    """Returns the problem of a chance with counts that end in the unsafe states, and pay −1 there.

    What was decided in these states is left out of the counts; the log keeps its rows, as what came
    of a visit of another pair later on is known all the same, and earns nothing. Other problems are
    as they were.
    """
    if problem.reach is None:
        return problem
    counts, unsafe = problem.counts, problem.reach.states
    state = counts.pairs.state
    kept = ~unsafe[state][arrays.run_owners(counts.offsets)]
    lengths = arrays.run_sums(kept.astype(np.int64), counts.offsets)
    rewards = LoggedRewards(np.where(unsafe[state], -1.0, 0.0), "pair", known=True)
    ended = Counts(
        counts.pairs,
        arrays.offsets_of(lengths),
        counts.successor[kept],
        counts.times[kept],
        rewards,
        counts.starts,
        counts.terminal | unsafe,
    )
    log = problem.log
    if log is not None:
        log = arrays.altered(log, reward=np.zeros(log.num_steps))
    return arrays.altered(problem, counts=ended, log=log)

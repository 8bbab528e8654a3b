"""Enough states: by how well they tell returns on episodes that did not make them.

Every candidate of every size is made from some episodes, and tells the return from each row on of
the others: the mean return of the rows of its state among those that made it. Taken is the smallest
size whose error is not clearly above that of the best, by one standard error of their difference
over episodes (Breiman, Friedman, Olshen and Stone 1984, section 3.4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray, run_owners, run_sums
from surestep.errors import MissingExtra, install

MAKING_SHARE = 0.7  # of the episodes that learn: these make candidates, the others measure them


class Rows(NamedTuple):
    """Measurements, and what was earned from there on; whole episodes, in the order of the log."""

    values: FloatArray  # [N, C]
    returns: FloatArray  # [N] discounted, from each row to the end of its episode
    offsets: IntArray  # [E+1] episode e has the rows offsets[e] … offsets[e+1] − 1

    @property
    def num_episodes(self) -> int:
        """Counts the episodes."""
        return self.offsets.size - 1

    def part(self, first: int, last: int) -> Rows:
        """Returns the episodes `first` … `last` − 1."""
        offsets = self.offsets[first : last + 1]
        rows = slice(int(offsets[0]), int(offsets[-1]))
        return Rows(self.values[rows], self.returns[rows], offsets - offsets[0])


class Fit(NamedTuple):
    """The fit of a number of states: how well it tells returns."""

    states: int
    error: float  # mean squared error of the return, on episodes that did not make the states
    explained: float  # 1 − error / that of one state for all


def making_and_measuring(rows: Rows) -> tuple[Rows, Rows]:
    """Splits the episodes in the order of the log: those that make candidates, and the others."""
    making = min(max(round(MAKING_SHARE * rows.num_episodes), 1), rows.num_episodes - 1)
    return rows.part(0, making), rows.part(making, rows.num_episodes)


def squared_errors(
    making: Rows, measuring: Rows, states: tuple[IntArray, IntArray], num_states: int
) -> FloatArray:
    """Returns the summed squared error [E] of each measuring episode.

    `states` are those of the rows that make and of those that measure. A state that no row made
    has the mean of all.
    """
    overall = float(making.returns.mean())
    times = np.bincount(states[0], minlength=num_states)
    total = np.bincount(states[0], making.returns - overall, minlength=num_states)
    told = overall + total / np.maximum(times, 1)
    errors: FloatArray = run_sums((measuring.returns - told[states[1]]) ** 2, measuring.offsets)
    return errors


def fit_of(states: int, errors: FloatArray, measuring: Rows) -> Fit:
    """Returns the fit that these summed errors [E] mean."""
    spread = measuring.returns - measuring.returns.mean()
    alone = float((spread**2).mean())
    error = float(errors.sum()) / measuring.returns.size
    return Fit(states, error, 1 - error / alone if alone > 0 else 0.0)


def smallest_good(errors: Sequence[FloatArray], deviations: float = 1.0) -> int:
    """Returns the place of the first candidate whose error is not clearly above the least.

    `errors` [E] are those of each candidate on the same episodes, the smallest candidate first.
    Clearly is by so many standard errors of the difference.
    """
    best = min(range(len(errors)), key=lambda place: (float(errors[place].sum()), place))
    for place in range(best):
        more = errors[place] - errors[best]
        standard_error = float(more.std(ddof=1)) * np.sqrt(more.size) if more.size > 1 else 0.0
        if float(more.sum()) <= deviations * standard_error:
            return place
    return best


def returns_of(rewards: FloatArray, offsets: IntArray, discount: float) -> FloatArray:
    """Returns Σ_i γ^i r_{t+i} [N] from each row t to the end of its episode.

    All episodes go back from their ends at once, one step at a time.
    """
    returns = rewards.astype(np.float64).copy()
    owner = run_owners(offsets)
    to_go = offsets[owner + 1] - 1 - np.arange(rewards.size)  # steps after each row
    order = np.argsort(to_go, kind="stable")
    begins = np.searchsorted(to_go[order], np.arange(int(to_go.max(initial=0)) + 2))
    for left in range(1, begins.size - 1):
        rows = order[begins[left] : begins[left + 1]]
        returns[rows] += discount * returns[rows + 1]
    return returns


def scikit_learn(module: str) -> Any:
    """Returns a module of scikit-learn, or of what it brings; it comes with the extra `states`."""
    try:
        return import_module(module)
    except ImportError:
        raise MissingExtra(
            f"states are learnt with scikit-learn, which is not installed; {install('states')}"
        ) from None

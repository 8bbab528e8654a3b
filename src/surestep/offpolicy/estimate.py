"""The parts of an off-policy estimate, so that its error can be judged.

An interval needs more than the estimate: one value an episode, and what the estimate would have
been had the log held other multiplicities of its episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import AnyArray, FloatArray, IntArray
from surestep._reprs import short_repr
from surestep.errors import InvalidParameter, UnsupportedPolicy


class Estimate(Protocol):
    """An estimate, and one value an episode of which it is the mean."""

    @property
    def value(self) -> float:
        """Returns the estimate."""
        ...

    @property
    def values(self) -> FloatArray:
        """One value an episode [E], with the estimate as their mean."""
        ...

    def resampled(self, multiplicity: AnyArray) -> FloatArray:
        """Returns the estimates [B] from logs that hold episode i `multiplicity[b, i]` times."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class MeanEstimate:
    """The mean of one value an episode; the values are independent and have the right mean."""

    values: FloatArray  # [E]
    value: float = field(init=False)

    __repr__ = short_repr("value", "values.size")

    def __post_init__(self) -> None:
        """Takes the mean."""
        values = arrays.numbers("values", self.values, InvalidParameter).astype(
            np.float64, copy=False
        )
        if values.ndim != 1 or values.size == 0:
            raise InvalidParameter(f"values have shape {values.shape}, expected one an episode")
        with np.errstate(over="ignore", invalid="ignore"):
            mean = float(values.mean())
        check_finite(np.array(mean))
        object.__setattr__(self, "values", arrays.freeze(values))
        object.__setattr__(self, "value", mean)

    def resampled(self, multiplicity: AnyArray) -> FloatArray:
        """Σ_i m_bi x_i / Σ_i m_bi."""
        means: FloatArray = multiplicity @ self.values / multiplicity.sum(axis=1)
        return means


@dataclass(frozen=True, slots=True, eq=False)
class RatioEstimate:
    """Σ_t (Σ_i x_it / Σ_i w_it): at every step t a mean over the episodes, weighted with w_it.

    Episode i owns a run of terms, one a step. After its last step it goes on with x = 0 and its
    last weight. `values` are the estimate's linearisation in its sums,
    θ + Σ_t (x_it − R_t w_it) / mean_j w_jt with R_t = Σ_i x_it / Σ_i w_it (the delta method): their
    mean is θ, and their spread over √E is the standard error of θ in large logs.
    """

    offsets: IntArray  # [E+1] runs of terms
    term: FloatArray  # x_it
    weight: FloatArray  # w_it
    value: float = field(init=False)
    values: FloatArray = field(init=False)  # [E]

    __repr__ = short_repr("value", "values.size")

    def __post_init__(self) -> None:
        """Adds up the terms."""
        lengths = arrays.run_lengths(self.offsets)
        size, last = int(lengths.max()), self.weight[self.offsets[1:] - 1]
        step = self.steps()
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            sums = np.bincount(step, self.term, minlength=size)
            ended = np.bincount(lengths, last, minlength=size + 1)[:size]
            totals = np.cumsum(ended, dtype=np.float64)
            totals += np.bincount(step, self.weight, minlength=size)
            if (gone := ~(totals > 0)).any():
                raise UnsupportedPolicy(
                    f"at step {np.argmax(gone)} no episode of the log has any weight left: the "
                    "policy would not have acted like any of them; expected more episodes, or an "
                    "estimator without weighted means"
                )
            ratio = sums / totals
            scale = lengths.size / totals
            later = np.append(np.cumsum((ratio * scale)[::-1])[::-1], 0.0)
            linear = arrays.run_sums(
                self.term * scale[step] - self.weight * (ratio * scale)[step], self.offsets
            )
            values = ratio.sum() + (linear - last * later[lengths])
        check_finite(values)
        object.__setattr__(self, "value", float(ratio.sum()))
        object.__setattr__(self, "values", arrays.own(values))

    def steps(self) -> IntArray:
        """Returns the step t of each term."""
        return np.arange(self.term.size) - self.offsets[arrays.run_owners(self.offsets)]

    def resampled(self, multiplicity: AnyArray) -> FloatArray:
        """Estimates with weighted episodes; a step without any weight left counts as 0."""
        from scipy.sparse import csr_array

        lengths = arrays.run_lengths(self.offsets)
        shape = (lengths.size, int(lengths.max()))
        step, m = self.steps(), multiplicity.astype(np.float64)
        ended = np.flatnonzero(lengths < shape[1])
        last = self.weight[self.offsets[1:] - 1]
        after = csr_array((last[ended], (ended, lengths[ended])), shape)
        sums = m @ csr_array((self.term, step, self.offsets), shape)
        totals = m @ csr_array((self.weight, step, self.offsets), shape)
        totals = totals + np.cumsum(m @ after, axis=1)
        ratio = np.divide(sums, totals, out=np.zeros_like(sums), where=totals > 0)
        estimates: FloatArray = ratio.sum(axis=1)
        return estimates


def check_finite(values: FloatArray) -> None:
    """Refuses an estimate that no double holds."""
    if not np.isfinite(values).all():
        raise UnsupportedPolicy(
            "importance weights and rewards are so large that the estimate is no finite number; "
            "expected a policy nearer to the behavior policy, for episodes this long"
        )

"""The Dirichlet priors of rows and starts: which weight each state has that a pair may lead to.

Where the problem says which successors a pair may have, its weight is spread over these, and it may
have weights of the user's own. Otherwise a pair may lead to every known state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammaln

from surestep._arrays import BoolArray, FloatArray, IntArray, run_owners
from surestep.certificates.drawn import PriorRows, startable
from surestep.errors import CertificateRefused
from surestep.model.counts import Counts
from surestep.model.problem import Problem
from surestep.model.successors import Successors

PriorName = Literal["weight", "uniform", "jeffreys", "empirical-bayes", "own"]
FIXED_ALPHA = {"uniform": 1.0, "jeffreys": 0.5}
WEIGHTS = 2.0 ** (np.arange(-40, 81) / 4)  # among which empirical Bayes chooses: 2⁻¹⁰ … 2²⁰


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """The priors of all rows, and of the starts."""

    rows: PriorRows
    alpha: float | None  # of a successor, where it is the same for all
    total: float | None  # of a row, where it is the same for all
    start_alpha: float  # of a start

    def sentences(self, problem: Problem) -> tuple[str, ...]:
        """What is assumed about rows, in plain words."""
        if problem.support is None:
            over = f"all {problem.num_states} states"
        else:
            over = "the successors that were given"
        if self.alpha is not None:
            weights = f"weight {self.alpha:.6g} each"
        elif self.total is not None:
            weights = f"a weight of {self.total:.6g} shared evenly among those of the row"
        else:
            weights = "the weights that were given"
        prior = (
            "The chances of each row of transitions are a draw from a Dirichlet prior over "
            f"{over}, with {weights}, independent of all other rows: the confidence is meant under "
            "this prior."
        )
        return (prior,) if problem.support is None else (prior, problem.support.sentence())


def prior_of(problem: Problem, name: PriorName, weight: float) -> Prior:
    """The prior of that name; `weight` is the total weight of a row, where it has no other one.

    The starts have the same kind of prior, or where the weights of rows are given, that total.
    """
    counts, support = problem.counts, problem.support
    if name == "own" and (support is None or support.weight is None):
        raise CertificateRefused(
            "prior is 'own', but the problem has no weights of successors; expected "
            "Problem(support=Successors(…, weight=…)), or another prior"
        )
    if name == "empirical-bayes":
        weight = likeliest_weight(counts, problem.support_sizes())
    fixed = FIXED_ALPHA.get(name)
    start_alpha = weight / int(startable(counts).sum()) if fixed is None else fixed
    if support is None:
        alpha = weight / problem.num_states if fixed is None else fixed
        return Prior(PriorRows.of(counts), alpha, alpha * problem.num_states, start_alpha)
    weights = weights_of(support, name, weight)
    total = weight if fixed is None and name != "own" else None
    return Prior(PriorRows.given(counts, support, weights), fixed, total, start_alpha)


def weights_of(support: Successors, name: PriorName, weight: float) -> FloatArray:
    """The weight of each given successor [T']."""
    if name == "own" and support.weight is not None:
        return support.weight
    if name in FIXED_ALPHA:
        return np.full(support.successor.size, FIXED_ALPHA[name])
    return weight / support.sizes[run_owners(support.offsets)]


def likeliest_weight(counts: Counts, sizes: IntArray) -> float:
    """The total weight c of `WEIGHTS` under which the data is likeliest, the rows drawn anew.

    With m(s,a) = `sizes` [K] successors that a pair may have, ln P(data | c) =
    Σ_(s,a) lnΓ(c) − lnΓ(c + n(s,a)) + Σ_s' lnΓ(c/m + n(s,a,s')) − lnΓ(c/m).
    """
    visits, rows = np.unique(counts.visits, return_counts=True)
    seen = counts.times > 0
    alike = np.stack([counts.times[seen], sizes[run_owners(counts.offsets)[seen]]])
    alike = alike[:, np.lexsort(alike)]
    new: BoolArray = np.ones(alike.shape[1], np.bool_)
    new[1:] = np.diff(alike).any(axis=0)
    cells = np.diff(np.append(np.flatnonzero(new), new.size))
    times, size = alike[:, new]

    def log_likelihood(weight: float) -> float:
        of_rows = gammaln(weight) - gammaln(weight + visits)
        of_cells = gammaln(weight / size + times) - gammaln(weight / size)
        return float(rows @ of_rows + cells @ of_cells)

    return float(max(WEIGHTS, key=log_likelihood))

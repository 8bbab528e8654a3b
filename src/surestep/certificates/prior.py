"""The Dirichlet priors of rows and starts: which weight each state has that a pair may lead to.

Where the problem says which successors a pair may have, its weight is spread over these, and it may
have weights of the user's own. Otherwise a pair may lead to every known state.

No way to spread it is right everywhere. Shared evenly among hundreds of states, it gives the ends
of episodes, and where the log really goes, next to nothing: what was seen rarely then seems to lead
on for longer than it does, and a policy that does it, to gain. Pooled, an action does what actions
do in its state, so that there is nothing to gain where little is known; but what is rarely done may
well be what is dangerous, and a policy that goes where it is done then seems to gain. So "cautious"
makes both claims, and the smaller one is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from scipy.special import gammaln

from surestep._arrays import BoolArray, FloatArray, IntArray, run_owners, run_sums
from surestep.certificates.drawn import startable
from surestep.errors import CertificateRefused
from surestep.kernels.posterior import PriorRows
from surestep.model.counts import Counts
from surestep.model.problem import Problem
from surestep.model.statements import Statement
from surestep.model.successors import Successors

PriorName = Literal["cautious", "weight", "pooled", "uniform", "jeffreys", "empirical-bayes", "own"]
OF_A_WEIGHT = ("cautious", "weight", "pooled", "own")  # priors whose weight is for the user to say
READ_OFF = ("pooled", "empirical-bayes")  # the data, which leaves no exact posterior
FIXED_ALPHA = {"uniform": 1.0, "jeffreys": 0.5}
WEIGHTS = 2.0 ** (np.arange(-40, 81) / 4)  # among which empirical Bayes chooses: 2⁻¹⁰ … 2²⁰


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """The priors of all rows, and of the starts."""

    rows: PriorRows
    alpha: float | None  # of a successor, where it is the same for all
    total: float | None  # of a row, where it is the same for all
    start_alpha: float  # of a start
    name: PriorName


def prior_statements(problem: Problem, priors: Sequence[Prior]) -> tuple[Statement, ...]:
    """Returns what is assumed about rows; of several priors, that one of them is right."""
    first = priors[0]
    name = first.name if len(priors) == 1 else "cautious"
    states = problem.num_states if problem.support is None else None
    statements = [
        Statement(
            "rows-prior",
            {"prior": name, "states": states, "alpha": first.alpha, "weight": first.total},
        )
    ]
    if problem.support is not None:
        statements.append(problem.support.statement())
    if any(prior.name in READ_OFF for prior in priors):
        statements.append(Statement("prior-read-off", {"prior": name}))
    return tuple(statements)


def priors_of(problem: Problem, name: PriorName, weight: float) -> tuple[Prior, ...]:
    """Returns the prior of that name, or the two of the cautious; see `prior_of`."""
    names: tuple[PriorName, ...] = ("weight", "pooled") if name == "cautious" else (name,)
    return tuple(prior_of(problem, single, weight) for single in names)


def prior_of(problem: Problem, name: PriorName, weight: float) -> Prior:
    """Returns the prior of that name; `weight` is the total of a row, where it has no other one.

    The starts have a weight that is shared evenly: the same for each as a state of a row has, or
    where weights of rows are not the same, that total.
    """
    counts, support = problem.counts, problem.support
    if name == "own" and (support is None or support.weight is None):
        raise CertificateRefused(
            "prior is 'own', but the problem has no weights of successors; expected "
            "Problem(support=Successors(…, weight=…)), or another prior",
            code="no-successor-weights",
        )
    if name == "empirical-bayes":
        weight = likeliest_weight(counts, problem.support_sizes())
    fixed = FIXED_ALPHA.get(name)
    alpha, total = fixed, None if name == "own" or fixed is not None else weight
    if support is not None:
        rows = rows_given(counts, support, weights_of(support, counts, name, weight))
    elif name == "pooled":
        rows = pooled_rows(counts, weight)
    else:
        total = weight if fixed is None else fixed * problem.num_states
        rows, alpha = even_rows(counts, total), total / problem.num_states
    return Prior(
        rows=rows,
        alpha=alpha,
        total=total,
        start_alpha=weight / int(startable(counts).sum()) if fixed is None else fixed,
        name=name,
    )


def rows_given(counts: Counts, support: Successors, weight: FloatArray) -> PriorRows:
    """Rows about given successors, with weights [T']."""
    nothing = np.zeros(0)
    times = support.times(counts)
    return PriorRows(support.offsets, support.successor, times, weight, 0.0, nothing, nothing)


def even_rows(counts: Counts, weight: float) -> PriorRows:
    """Rows in which a weight is shared evenly among all states."""
    size, nobody = counts.pairs.num_states, np.zeros(counts.pairs.num_pairs)
    steps = (counts.offsets, counts.successor, counts.times)
    return PriorRows(*steps, np.zeros(0), weight, nobody, np.arange(1, size + 1) / size)


def pooled_rows(counts: Counts, weight: float) -> PriorRows:
    """Rows with the prior c · m: a pair does what pairs of its state do.

    m(s'|s,a) = (n(s,·,s') + c g(s')) / (n(s,·) + c), g(s') = (n(·,·,s') + c/|S|) / (n + c), where n
    counts steps: each is the mean of a Dirichlet posterior whose prior has the weight c. A pair's
    own steps count in both. Left out, two actions that were seen less than c times would each be
    taken for what the other one showed, and so the better for the worse.
    """
    pooled, elsewhere = base_of(counts, weight)
    steps = (counts.offsets, counts.successor, counts.times)
    return PriorRows(*steps, np.zeros(0), weight, pooled, np.cumsum(elsewhere))


def base_of(counts: Counts, weight: float) -> tuple[FloatArray, FloatArray]:
    """Returns n(s,·) / (n(s,·) + c) of each pair [K], and g [S]; see `pooled_rows`."""
    pairs = counts.pairs
    visits = run_sums(counts.visits, pairs.offsets)
    into = np.bincount(counts.successor, counts.times, pairs.num_states)
    every = (into + weight / pairs.num_states) / (into.sum() + weight)
    return (visits / (visits + weight))[pairs.state], every


def weights_of(support: Successors, counts: Counts, name: PriorName, weight: float) -> FloatArray:
    """Returns the weight of each given successor [T']."""
    owner = run_owners(support.offsets)
    if name == "own" and support.weight is not None:
        return support.weight
    if name in FIXED_ALPHA:
        return np.full(support.successor.size, FIXED_ALPHA[name])
    if name != "pooled":
        return weight / support.sizes[owner]
    pairs, size = counts.pairs, np.int64(counts.pairs.num_states)
    step = pairs.state[run_owners(counts.offsets)] * size + counts.successor
    given, place = np.unique(pairs.state[owner] * size + support.successor, return_inverse=True)
    pooled, elsewhere = base_of(counts, weight)
    visits = np.maximum(run_sums(counts.visits, pairs.offsets), 1)[pairs.state[owner]]
    times = np.bincount(np.searchsorted(given, step), counts.times, given.size)[place]
    share = pooled[owner] * times / visits + (1 - pooled[owner]) * elsewhere[support.successor]
    return weight * share / run_sums(share, support.offsets)[owner]


def likeliest_weight(counts: Counts, sizes: IntArray) -> float:
    """Returns the total weight c of `WEIGHTS` under which the data is likeliest.

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

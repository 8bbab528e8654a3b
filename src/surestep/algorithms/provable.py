"""Policies that can be proved: the best one whose rollouts the data have enough steps for.

A stitched certificate (`certificates.stitched`) puts rollouts of π together from the log's own
steps. It has m rounds only if each pair k was visited m·c_k times, with c_k the reads of k in one
rollout. So the policy that gains the most in the estimate M̂ is often one that cannot be proved: all
its rounds stop at one pair that it always takes and π_b rarely took. With d(s,a) the discounted
visits of a pair, the best policy that leaves m rounds solves the linear program

    max  Σ_k d_k r̂_k − Σ_k β_k u_k
    s.t. Σ_a d(s,a) = ι(s) + γ Σ_k P̂(s|k) d_k                (the flow of M̂)
         u_k ≥ d_k − π_b(k) Σ_a d(s,a),  u_k ≥ 0             (what is taken more often than before)
         d_k ≤ max((n_k − √n_k) / (m κ_k), d_k under π_b)    (what the data have steps for)

and is π(a|s) = d(s,a) / Σ_a d(s,a); π_b in states that d never visits. n_k are the visits in the
data, less one standard error: m is the number of rounds that as much data again will allow. κ_k is
the number of reads for each discounted visit, as π_b has it: rollouts read steps undiscounted,
until they are cut where γ^t = 0.03. β_k is a price times the standard error of the value of a step,
√(Var(r + γV_b(s′)) / n_k): a change has to promise more than chance would. Pairs that are closed or
were never seen have u_k = 0; the latter end rollouts and use up nothing, so that they have no other
limit. The visits of π_b are a solution, so that there is a best one, and it is never worse than π_b
at the start.

Only the data of the problem have a say. A certificate that holds for every policy that was chosen
from the first part of a log holds for this one: where the problem is that part, nothing of the part
that judges is used, and no claim becomes wrong more often.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

import numpy as np
import scipy  # loads its parts when they are needed
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import Settings
from surestep.algorithms.contract import Promise, improvement_of
from surestep.errors import InvalidParameter, NotConverged
from surestep.model import FiniteMDP, Improvement, Policy, Problem
from surestep.planning.evaluation import evaluate, occupancy

MOST_PAIRS = 100_000
LEFT = 0.03  # γ^t where rollouts are taken to be cut
MOST_STEPS = 10_000  # of a rollout
KAPPA = (0.5, 8.0)  # limits of κ; beyond them, errors of M̂ outweigh reads
ACCURACY = 1e-10  # of the program, which has costs of 1 at most
LEAST_VISITED = 1e-9  # discounted visits of a state below which it is not visited
INFEASIBLE = 2  # the status in linprog
ANYTHING: arrays.FloatArray = np.zeros(0)  # lower limits for no rows
SAME = 1e-6  # smaller changes of probabilities are errors of the solver


@dataclass(frozen=True, slots=True, kw_only=True)
class Provable(Settings):
    """The best policy of M̂ whose rollouts the data have enough steps for, by a linear program.

    Parameters
    ----------
    rounds : float
        The number of rollouts that as much data again should have the steps for; 20 by default.
    price : float
        The number of standard errors of a step's value that a change has to promise; 1 by default.

    Examples
    --------
    >>> from surestep.algorithms import Provable
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = Provable().improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.45
    """

    rounds: Annotated[
        float, Meta(ge=1e-9, le=10**12, description="the data should allow so many rollouts")
    ] = 20  # m
    price: Annotated[float, Meta(ge=0, le=10**12, description="a number of standard errors")] = (
        1  # β
    )

    name: ClassVar = "provable"
    source: ClassVar = "surestep: a linear program with the limits of stitched rollouts"
    constraint: ClassVar = "π ≤ π_b on pairs never seen"
    promises: ClassVar = frozenset(Promise) - {Promise.OPTIMAL_IN_CLASS, Promise.RENUMBERING}

    def improve(self, problem: Problem) -> Improvement:
        """Solves the program; refused for very many pairs, and where γ = 1 and M̂ never ends.

        Parameters
        ----------
        problem : Problem
            The data, π_b and the value bounds.

        Returns
        -------
        Improvement
            The policy, and its value in the estimated MDP.
        """
        check_program_size(problem, self.name)
        program = Program.of(problem, self.price)
        policy = policy_with_visits(program.solved(program.limits(self.rounds)), problem)
        improvement = improvement_of(problem, policy)
        initial = program.estimate.initial
        if initial @ improvement.plan.value >= initial @ program.value:
            return improvement
        return improvement_of(problem, problem.behavior)


class NoSolution(NotConverged):
    """A program whose rows contradict each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Program:
    """The linear program of a problem, without limits of d; variables: d [K], u [K], Σ_a d [S].

    It may have further rows, with a lower limit on each Σ_k d_k row_k, and pairs that keep the
    share of π_b.
    """

    problem: Problem
    estimate: FiniteMDP
    value: arrays.FloatArray  # V of π_b [S]
    visits: arrays.FloatArray  # d of π_b [K]
    cost: arrays.FloatArray
    above: "scipy.sparse.csr_array"  # d_k − u_k − π_b(k) Σ_a d(s,a) ≤ 0
    flow: "scipy.sparse.csr_array"  # the definition of Σ_a d, and the flow
    most_above: arrays.FloatArray  # the limit of u [K]
    rows: arrays.FloatArray  # [J, K]
    scale: arrays.FloatArray  # the largest magnitude of each row [J]; 1 where there are only zeros

    @classmethod
    def of(
        cls,
        problem: Problem,
        price: float,
        estimate: FiniteMDP | None = None,
        rows: Sequence[arrays.FloatArray] = (),
        kept: arrays.BoolArray | None = None,
    ) -> "Program":
        """Makes the program of a problem, in its estimated MDP unless another model is given."""
        behavior = problem.behavior
        estimate = problem.estimate() if estimate is None else estimate
        value = evaluate(estimate, behavior)
        state = estimate.pairs.state
        size = state.size
        states = value.size
        risk = price * standard_errors(problem, estimate, value)
        cost = np.concatenate([-estimate.expected_reward, risk, np.zeros(states)])
        each = np.ones(size)
        every = np.ones(states)
        row = np.arange(states)
        d = np.arange(size)
        total = 2 * size + row
        scale = np.array([arrays.largest_magnitude(one) or 1.0 for one in rows])
        above = [
            (each, d, d),
            (-each, d, size + d),
            (-behavior.probability, d, total[state]),
            *((-one / scale[j], np.full(size, size + j), d) for j, one in enumerate(rows)),
        ]
        alike = np.flatnonzero(np.zeros(size, np.bool_) if kept is None else kept)
        last = 2 * states + np.arange(alike.size)
        flow = [
            (each, state, d),
            (-every, row, total),
            (every, states + row, total),
            (
                -problem.single_discount * estimate.probability,
                states + estimate.successor,
                arrays.run_owners(estimate.offsets),
            ),
            (each[alike], last, alike),
            (-behavior.probability[alike], last, total[state[alike]]),
        ]
        return cls(
            problem,
            estimate,
            value,
            occupancy(estimate, behavior),
            cost / (arrays.largest_magnitude(cost) or 1.0),
            matrix(above, (size + len(rows), cost.size)),
            matrix(flow, (2 * states + alike.size, cost.size)),
            np.where(free_pairs(problem), np.inf, 0.0),
            np.array(rows).reshape(len(rows), size),
            scale,
        )

    def limits(self, rounds: float) -> arrays.FloatArray:
        """Returns the largest d [K] that leaves m rounds."""
        n = self.problem.counts.visits
        read = self.reads()
        visits = arrays.run_sums(self.visits, self.estimate.pairs.offsets)
        usual = np.full(read.size, read.sum() / visits.sum())
        kappa = np.divide(read, visits, out=usual, where=visits > LEAST_VISITED)
        room = (n - np.sqrt(n)) / (rounds * np.clip(kappa, *KAPPA)[self.estimate.pairs.state])
        slack = ACCURACY * (1 + self.visits)  # the error that the solver may make
        return np.where(n > 0, np.maximum(room, self.visits + slack), np.inf)

    def reads(self) -> arrays.FloatArray:
        """Returns the expected undiscounted visits of states [S] by π_b until a rollout is cut."""
        estimate = self.estimate
        discount = self.problem.single_discount
        pair = arrays.run_owners(estimate.offsets)
        steps = MOST_STEPS if discount == 1 else 1
        if 0 < discount < 1:
            steps = min(MOST_STEPS, math.ceil(math.log(LEFT) / math.log(discount)))
        chance = estimate.probability * self.problem.behavior.probability[pair]
        onwards = matrix(
            [(chance, estimate.successor, estimate.pairs.state[pair])],
            (self.value.size, self.value.size),
        )
        here = estimate.initial
        read = here.copy()
        for _ in range(steps - 1):
            here = onwards @ here
            read += here
            if here.sum() < LEFT / 10:
                break
        return read

    @property
    def slack(self) -> arrays.FloatArray:
        """Returns the amount by which a row [J] may miss its lower limit through solver error."""
        slack: arrays.FloatArray = ACCURACY * (1 + self.visits.sum()) * self.scale
        return slack

    def solved(
        self, limits: arrays.FloatArray, least: arrays.FloatArray = ANYTHING
    ) -> arrays.FloatArray:
        """Solves for d [K] within limits, with each row [J] at least `least` (−∞: no limit)."""
        states = self.value.size
        enough = np.concatenate([np.zeros(limits.size), (self.slack - least) / self.scale])
        used = np.isfinite(enough)
        inflow = np.pad(self.estimate.initial, (states, self.flow.shape[0] - 2 * states))
        most = np.concatenate([limits, self.most_above, np.full(states, np.inf)])
        for method in ("highs-ipm", "highs-ds"):  # the first is by far the faster one
            solution = scipy.optimize.linprog(
                self.cost,
                A_ub=self.above[used],
                b_ub=enough[used],
                A_eq=self.flow,
                b_eq=inflow,
                bounds=np.stack([np.zeros(most.size), most], axis=1),
                method=method,
                options={
                    "primal_feasibility_tolerance": ACCURACY,
                    "dual_feasibility_tolerance": ACCURACY,
                },
            )
            if solution.status == 0:
                break
        else:
            failed = NoSolution if solution.status == INFEASIBLE else NotConverged
            raise failed(f"the linear program of provable was not solved: {solution.message}")
        visits: arrays.FloatArray = np.maximum(solution.x[: limits.size], 0.0)
        return visits


def check_program_size(problem: Problem, name: str) -> None:
    """Refuses a value that is not a problem, and more pairs than the linear program allows."""
    arrays.expect("problem", problem, Problem)
    number = problem.counts.pairs.num_pairs
    if number > MOST_PAIRS:
        raise InvalidParameter(
            f"the problem has {number:,} pairs, but the linear program of {name} takes "
            f"{MOST_PAIRS:,} at most; take another algorithm, such as spibb"
        )


def matrix(
    parts: Sequence[tuple[Any, Any, Any]], shape: tuple[int, int]
) -> "scipy.sparse.csr_array":
    """Returns the sparse matrix of parts, each of numbers, their rows and their columns."""
    numbers, row, column = (np.concatenate(each) for each in zip(*parts, strict=True))
    return scipy.sparse.csr_array((numbers, (row, column)), shape=shape)


def free_pairs(problem: Problem) -> arrays.BoolArray:
    """Returns the pairs [K] that may be taken more often than by π_b: open, and seen."""
    return problem.open_pairs() & (problem.counts.visits > 0)


def policy_with_visits(visits: arrays.FloatArray, problem: Problem) -> Policy:
    """Returns the policy with these visits [K]; π_b in states with hardly any visits.

    To the last bit, no pair that is closed or was never seen is taken more often than by π_b. Where
    no other pair has visits, that leaves π_b: other differences are errors of the solver.
    """
    pairs = problem.counts.pairs
    offsets = pairs.offsets
    state = pairs.state
    behavior = problem.behavior.probability
    total = arrays.run_sums(visits, offsets)[state]
    chances = np.divide(visits, total, out=behavior.copy(), where=total > LEAST_VISITED)
    free = free_pairs(problem)
    least = np.where(free, 0.0, np.minimum(chances, behavior))
    more = np.where(free, chances, 0.0)
    taken = arrays.run_sums(more, offsets)
    share = (1 - arrays.run_sums(least, offsets)) / np.maximum(taken, LEAST_VISITED)
    chances = least + more * share[state]
    moved = (arrays.run_sums(np.abs(chances - behavior), offsets) > SAME) & (taken > LEAST_VISITED)
    return Policy(pairs, np.where(moved[state] & (total > LEAST_VISITED), chances, behavior))


def standard_errors(
    problem: Problem, estimate: FiniteMDP, value: arrays.FloatArray
) -> arrays.FloatArray:
    """Returns √(Var(r + γV(s′)) / n) of each pair [K]; never less than with half the usual spread.

    Of rewards that differ between visits of one transition, only the least and the greatest are
    known; a quarter of the way between them is about one standard deviation.
    """
    counts = problem.counts
    n = np.maximum(counts.visits, 1)
    owner = arrays.run_owners(estimate.offsets)
    worth = estimate.reward + estimate.discount[owner] * value[estimate.successor]
    mean = np.bincount(owner, estimate.probability * worth, n.size)
    variance = np.bincount(owner, estimate.probability * (worth - mean[owner]) ** 2, n.size)
    least, greatest = counts.observed_rewards()
    within = ((greatest - least) / 4) ** 2
    if counts.rewards.per == "transition":
        within = np.bincount(arrays.run_owners(counts.offsets), counts.times * within, n.size) / n
    whole: arrays.FloatArray = variance + within
    usual = float(counts.visits @ whole) / max(int(counts.visits.sum()), 1)
    return np.sqrt(np.maximum(whole, usual / 4) / n)

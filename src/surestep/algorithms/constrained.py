"""Policies within limits: the best one by which no further signal gets worse than it may.

Every further signal j of a problem (`model.signals`) has rewards r_j of its own, and a least ρ_j
that it may have: ρ_j(π_b) less its margin, or a number that somebody gave. With d(s,a) the
discounted visits of a pair, ρ_j is Σ_k d_k r̂_j(k). So the program of `provable` gets one more row
for each of them, and one for the first signal, which must not get worse either:

    Σ_k d_k r̂_j(k) ≥ least ρ_j
    d_k = π_b(k) Σ_a d(s,a)       for pairs seen too seldom, and for those that are closed

This is the linear program of a constrained MDP (Altman 1999, chapter 3). Where each limit is what
π_b has, or less, π_b is a solution.

**Unsafe states.** The chance to reach them is not linear in discounted visits. In the program they
end the episode, and are worth V_b of each signal there: what follows counts as under π_b. Their
discounted first visits are then linear, and stand for the chance. A policy that was found is
evaluated in the estimate of every signal itself, with the chance as it is. If it breaks a limit,
the row of that limit asks for more, in proportion, and the program is solved again. So no tolerance
of a solver, and no stand-in, decides whether a limit is kept. If no policy is found within a few
rounds, π_b stays. What is done in unsafe states, and in those visited only after them, does not
change the chance: a second program sets it free, with all else as it was found.

**A signal with a discount of its own** is not linear in these visits either. Its row stands for it
in the same way, and a policy is judged by the signal itself. One that may never end breaks the
limit of a signal without a discount.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep.algorithms.contract import NWedge, ended, improvement_of, kept_where
from surestep.algorithms.provable import (
    LEAST_VISITED,
    NoSolution,
    Program,
    Provable,
    check_program_size,
    free_pairs,
    matrix,
    policy_with_visits,
)
from surestep.errors import NeverEnds
from surestep.model import FiniteMDP, Improvement, Policy, Problem
from surestep.model.problem import Reach, stopped
from surestep.planning.evaluation import evaluate_with_bound, occupancy

TRIES = 8  # programs, each of which asks for more where the policy of the last one broke a limit
BEYOND = 1.02  # a row asks for more by the missing amount times that, so that the rounds end
NEVER = -1e300  # ρ of a policy that may never end, without a discount
CLEARLY = 0.01  # the least difference of probabilities that counts as taken more often
NOTHING: Mapping[str, float] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Constrained(Provable):
    """The best policy of M̂ by which no further signal gets worse than it may (Altman 1999).

    Pairs with at most `n_wedge` visits keep the probability of π_b. Without further signals, all
    that differs from `Provable` is N∧.

    Parameters
    ----------
    rounds : float
        The number of rollouts that as much data again should have the steps for; 20 by default.
    price : float
        The number of standard errors of a step's value that a change has to promise; 1 by default.
    n_wedge : int
        Pairs with at most that many visits keep the probability of π_b.

    References
    ----------
    Altman, E. (1999). Constrained Markov Decision Processes. Chapman and Hall, chapter 3.

    Examples
    --------
    >>> from surestep.algorithms import Constrained
    >>> from surestep.environments import make
    >>> world = make("gridworld")
    >>> problem = world.problem(world.sample(100, 1))
    >>> better = Constrained(n_wedge=10).improve(problem)
    >>> round(surestep.performance(world.mdp, better.policy), 2)  # that of π_b is 0.40
    0.42
    """

    n_wedge: NWedge

    name: ClassVar = "constrained"
    source: ClassVar = "Altman, Constrained Markov Decision Processes, 1999"
    constraint: ClassVar = "π = π_b on pairs seen at most N∧ times; limits of further signals in M̂"

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
        bounded = self.bounded(problem)
        return self.explained(bounded, bounded.best(self.rounds))

    def bounded(self, problem: Problem) -> "Bounded":
        """Makes the program of a problem with its limits, for any number of rounds.

        Parameters
        ----------
        problem : Problem
            The data, π_b and the further signals.

        Returns
        -------
        Bounded
            The program.
        """
        check_program_size(problem, self.name)
        return Bounded.of(problem, self.n_wedge, self.price)

    def explained(
        self, bounded: "Bounded", policy: Policy | None, spare: Mapping[str, float] = NOTHING
    ) -> Improvement:
        """Returns the improvement by a policy of the program, and which limit keeps pairs back.

        Parameters
        ----------
        bounded : Bounded
            The program of the problem.
        policy : Policy or None
            A policy of the program; None where there is none, which leaves π_b.
        spare : dict of float, optional
            How much more than its limit each signal was asked for, by name.

        Returns
        -------
        Improvement
            The policy, with `kept_by` and `unmet`.
        """
        problem = bounded.problem
        chosen = problem.behavior if policy is None else policy
        made = improvement_of(problem, chosen, n_wedge=self.n_wedge)
        if not problem.signals:
            return made
        return replace(
            made, kept_by=bounded.kept_by(chosen, self.rounds, spare), unmet=bounded.broken(chosen)
        )


class Limit(NamedTuple):
    """The least ρ that a signal may have in its own estimate."""

    name: str  # of the signal; empty: the first one
    model: FiniteMDP  # where it is a chance, unsafe states end it and pay −1
    reach: Reach | None
    value: arrays.FloatArray  # V of π_b [S]
    error: float  # of a value
    least: float
    origin: float  # what a claim is relative to: ρ of π_b, or 0 where it is about π_I alone

    @classmethod
    def of(
        cls, problem: Problem, name: str, margin: float, at_most: float | None = None
    ) -> "Limit":
        """Makes the limit of a signal by its problem and what it may lose, or cost at most."""
        model = stopped(problem).estimate()
        reach = problem.reach
        if reach is not None:
            model = replace(model, endless=0.0)  # who goes on for ever does not get there
        value, error = values_with_error(model, reach, problem.behavior)
        before = float(model.initial @ value)
        origin = 0.0 if reach is not None and reach.alone else before
        least = before - margin if at_most is None else -at_most
        return cls(name, model, reach, value, error, least, origin)

    def found(self, policy: Policy) -> tuple[float, float]:
        """Returns ρ of a policy, or NEVER, and a bound on the errors of ρ and the limit."""
        try:
            value, error = values_with_error(self.model, self.reach, policy)
        except NeverEnds:
            return NEVER, 0.0
        return float(self.model.initial @ value), error + self.error


class Bounded(NamedTuple):
    """The linear program of a problem with its limits; the first signal's limit comes first."""

    problem: Problem
    price: float
    scarce: arrays.BoolArray  # [K] pairs seen at most N∧ times
    unsafe: arrays.BoolArray  # [S]
    limits: tuple[Limit, ...]
    program: Program  # in which unsafe states are ends

    @classmethod
    def of(cls, problem: Problem, n_wedge: int, price: float) -> "Bounded":
        """Returns the program of a problem."""
        state = problem.counts.pairs.state
        limits = (
            Limit.of(problem, "", 0.0),  # the first signal, which must not get worse
            *(Limit.of(one.problem, one.name, one.margin, one.at_most) for one in problem.signals),
        )
        chances = [limit.reach.states for limit in limits[1:] if limit.reach is not None]
        unsafe = np.any([np.zeros(problem.num_states, np.bool_), *chances], axis=0)
        over = unsafe[state]
        scarce = problem.counts.visits <= n_wedge
        rows = [np.where(over, limit.value[state], limit.model.expected_reward) for limit in limits]
        inside = problem.within(scarce | over)
        model = ended(limits[0].model, over, limits[0].value[state])
        return cls(
            problem,
            price,
            scarce,
            unsafe,
            limits,
            Program.of(inside, price, model, rows, ~free_pairs(inside)),
        )

    def best(
        self, rounds: float, spare: Mapping[str, float] = NOTHING, without: str | None = None
    ) -> Policy | None:
        """Returns the best policy within the limits by `spare`; None if there is none.

        `without` is the name of a signal whose limit does not count.
        """
        least = np.array([limit.least + spare.get(limit.name, 0.0) for limit in self.limits])
        least[[limit.name == without for limit in self.limits]] = -np.inf
        program = self.program
        before = np.array([limit.model.initial @ limit.value for limit in self.limits])
        usual = program.rows @ program.visits
        asked = usual + (least - before) * self.ratio(usual, before)
        for _ in range(TRIES):
            try:
                visits = program.solved(program.limits(rounds), asked)
            except NoSolution:
                return None
            policy = kept_policy(visits, program.problem)
            worth, short = self.judged(policy, least)
            if (short <= 0).all():
                return self.freed(policy, least, rounds)
            if (worth <= NEVER).any():
                return None
            more = BEYOND * short * self.ratio(program.rows @ visits, worth) + program.slack
            asked = np.where(short > 0, asked + more, asked)
        return None

    def ratio(self, rows: arrays.FloatArray, found: arrays.FloatArray) -> arrays.FloatArray:
        """Returns row value / true value [J] where the program's row approximates it, else 1."""
        usual = self.limits[0].model.discount
        stand_in = np.array(
            [x.reach is not None or (x.model.discount != usual).any() for x in self.limits]
        )
        return np.divide(
            rows, found, out=np.ones(rows.size), where=stand_in & (found < 0) & (rows < 0)
        )

    def judged(
        self, policy: Policy, least: arrays.FloatArray
    ) -> tuple[arrays.FloatArray, arrays.FloatArray]:
        """Returns ρ of each signal [J], and how far it surely falls below its least."""
        worth, error = np.array([limit.found(policy) for limit in self.limits]).T
        return worth, least - worth - error

    def broken(self, policy: Policy) -> tuple[str, ...]:
        """Returns the names of the signals whose limits a policy breaks in the estimate."""
        _, short = self.judged(policy, np.array([limit.least for limit in self.limits]))
        return tuple(x.name for x, missing in zip(self.limits, short, strict=True) if missing > 0)

    def freed(self, policy: Policy, least: arrays.FloatArray, rounds: float) -> Policy:
        """Returns the policy with the best actions in and after unsafe states."""
        if not self.unsafe.any():
            return policy
        pairs = policy.pairs
        before = arrays.run_sums(occupancy(self.program.estimate, policy), pairs.offsets) > 0
        fixed = (before & ~self.unsafe)[pairs.state] | self.scarce | ~self.problem.open_pairs()
        start = arrays.altered(self.problem, behavior=policy, closed=fixed, signals=())
        rewards = [place for place, limit in enumerate(self.limits) if limit.reach is None]
        rows = [self.limits[place].model.expected_reward for place in rewards]
        program = Program.of(start, self.price, rows=rows, kept=~free_pairs(start))
        floor = np.concatenate([self.judged(policy, least)[0][:1], least[rewards][1:]])
        try:
            visits = program.solved(program.limits(rounds), floor)
        except NoSolution:
            return policy
        better = kept_policy(visits, start)
        gained, short = self.judged(better, least)
        return better if (short <= 0).all() and gained[0] > floor[0] else policy

    def kept_by(self, policy: Policy, rounds: float, spare: Mapping[str, float]) -> tuple[str, ...]:
        """Names for each pair [K] the signals whose limit keeps it from being taken more often.

        These are pairs that the best policy without that limit clearly takes more often.
        """
        pairs = policy.pairs
        names = [list[str]() for _ in range(pairs.num_pairs)]
        for limit in self.limits[1:]:
            other = self.best(rounds, spare, limit.name)
            if other is None:
                continue
            visits = arrays.run_sums(occupancy(self.limits[0].model, other), pairs.offsets)
            more = other.probability - policy.probability > CLEARLY
            for k in np.flatnonzero(more & (visits > LEAST_VISITED)[pairs.state]):
                names[k].append(limit.name)
        return tuple(";".join(several) for several in names)


def kept_policy(visits: arrays.FloatArray, problem: Problem) -> Policy:
    """Returns the policy with these visits [K]; π_b bit for bit where pairs are not free."""
    return kept_where(~free_pairs(problem), policy_with_visits(visits, problem), problem.behavior)


def values_with_error(
    model: FiniteMDP, reach: Reach | None, policy: Policy
) -> tuple[arrays.FloatArray, float]:
    """Returns V of a policy [S], or its chance within `reach.within` steps, and an error bound."""
    if reach is None or reach.within is None:
        evaluation = evaluate_with_bound(model, policy)
        return evaluation.value, evaluation.error_bound
    pair = arrays.run_owners(model.offsets)
    chance = model.probability * policy.probability[pair]
    onwards = matrix([(chance, model.pairs.state[pair], model.successor)], (reach.states.size,) * 2)
    unseen = arrays.run_sums(policy.probability * model.ending_reward, model.pairs.offsets)
    value = np.where(reach.states, -1.0, 0.0)
    for _ in range(reach.within):
        before = value
        value = np.where(reach.states, -1.0, unseen + onwards @ value)
        if (before == value).all():
            break
    return value, (reach.within + 1) * 2.0**-46

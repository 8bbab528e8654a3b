"""The time that a policy spends in states: what a model estimates of it, and what rows prove.

**Asked for** is a share. Let W = Σ_t γ^t be the discounted time of an episode until it is over, and
W_A that part of it that is spent in the states A: the share of A is p = E W_A / E W.

**Rollouts.** Let fold 2 be rows that had no part in choosing the policy and the states A, and fold
1 the others. On the stacks of fold 2 the policy is rolled out again and again: by the lemma of
`surestep.certificates.stitched` each rollout is, given those before, a trajectory of the policy,
stopped by a rule of its own past that fold 1 fixed. Each gives a part X and a whole Y ≤ w with

    E[X − pY | rollouts before] ≤ 0,

in one of two ways, of which fold 1 chooses one for each bound that is asked for.

- *Counting.* X is W_A of the rollout, and Y is W. Where it is cut with the discount γ^t, what is
  left lies between 0 and γ^t w, with w = 1/(1 − γ) the most time that there is: nothing is added to
  X, and γ^t w to Y. So E X ≤ E W_A, and E Y ≥ E W.
- *Stopping.* In every state the rollout stops with probability 1 − γ, drawn by itself. It is then
  there at a time T with P(T = t) = (1 − γ)γ^t, unless the episode was over before, so that it stops
  in A with probability (1 − γ) E W_A, and anywhere with (1 − γ) E W. X is 1 where it stops in A, Y
  where it stops at all. Where it is cut, X counts as 0 and Y as 1; w = 1. Rollouts are short, and
  nothing is left when they stop; but each tells of one state only.

**Theorem.** With a stake from fold 1, `bets.lower_share` finds L with P(L > p) ≤ δ, given fold 1:
for any logger, who may learn, and for any number of rows, whatever decided it. ∎ Time that is not
spent in A is spent elsewhere, so 1 − p is a share as well, and one minus its lower bound is an
upper bound of p.

**Without a discount** W counts the first H steps only, with H those of the longest episode of fold
1. Rollouts are cut after them, where nothing is left of W, and w = H.

What the rows that chose the policy say of its time is no such proof: luck that made them look good
sends the policy there.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    BoolArray,
    FloatArray,
    IntArray,
    offsets_of,
    run_lengths,
    run_owners,
    run_sums,
)
from surestep.certificates.bets import LARGEST_SHARE, log_goal, lower_share, usual_stake
from surestep.certificates.stacks import Way, horizons, roll_out_each, stacks_of
from surestep.certificates.stitched import Folds
from surestep.certificates.stitched_plans import CERTIFYING, PLANNING, SMALLEST_SPREAD
from surestep.checks.of_log import seed_of
from surestep.kernels.stitched import OURS, Case, Course, Stacks, Tails, coupled_chances
from surestep.model.counts import Counts
from surestep.model.log import ends_of
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.planning.evaluation import occupancy

REHEARSALS, RUNS = 2, 8  # on fold 1, and on fold 2
MOST_ROLLOUTS = 4_000  # of a run: a share of one half is then known to 4 %


@dataclass(frozen=True)
class TimeInStates:
    """The time that a policy spends in each state of an estimated model, where somebody decides."""

    model: FiniteMDP
    counts: Counts  # that the model is estimated from
    policy: Policy
    decided: BoolArray  # [S]

    @cached_property
    def in_states(self) -> FloatArray:
        """Returns the discounted visits [S] of each state; 0 where nothing is decided."""
        visits = occupancy(self.model, self.policy)
        return np.where(self.decided, run_sums(visits, self.model.pairs.offsets), 0.0)

    @cached_property
    def shares(self) -> FloatArray:
        """Returns the share of the time [S] in each state; 0 everywhere where there is none."""
        total = float(self.in_states.sum())
        return self.in_states / total if total > 0 else np.zeros(self.in_states.size)

    @property
    def decisions(self) -> FloatArray:
        """Returns the share [S] of the decisions behind the model that each state has."""
        visits = run_sums(self.counts.visits, self.counts.pairs.offsets)
        return visits / max(int(visits.sum()), 1)


def longest(folds: Folds) -> int:
    """Returns the steps of the longest episode of fold 1."""
    return int(run_lengths(folds.first.episode_offsets).max())


def share_bounds(
    policy: Policy, folds: Folds, sets: BoolArray, *, discount: float, delta: float
) -> FloatArray:
    """Returns bounds [A, 2] of the shares of time in sets of states [A, S].

    The first fold has chosen the policy and the sets. Each single bound misses with a chance of at
    most `delta`.
    """
    stacks, seed = stacks_of(folds.first), seed_of(folds.first)
    rolling = Rolling(policy, sets, ends_of(folds.first), stacks.sizes > 0, seed)
    clocks = clocks_for(discount, longest(folds))
    bets = [
        bets_on(rolling.rolled(stacks, clock, PLANNING, REHEARSALS), clock, folds.ratio, delta)
        for clock in clocks
    ]
    best = np.argmax([[bet.score for bet in of_clock] for of_clock in bets], axis=0)
    judging = stacks_of(folds.second)
    times = {c: rolling.rolled(judging, clocks[c], CERTIFYING, RUNS) for c in set(best.tolist())}
    low = [
        lower_share(
            *(times[c].there[place], times[c].most, times[c].complete),
            bets[c][place].stake,
            clocks[c].most,
            delta,
        )
        for place, c in enumerate(best.tolist())
    ]
    inside, outside = np.split(np.array(low), 2)
    return np.stack([inside, 1 - outside], axis=1)


class Clock(NamedTuple):
    """A way to tell the time of a rollout, which is cut after its horizon."""

    stop: float  # the chance to stop in a state; 0 where visits are counted
    discount: float  # of what is counted
    most: float  # w
    left: float  # of the time, after the horizon
    horizon: int | None


def clocks_for(discount: float, steps: int) -> list[Clock]:
    """Returns the ways among which fold 1 chooses; without a discount, `steps` are counted."""
    if discount == 1:
        return [Clock(0.0, 1.0, float(steps), 0.0, steps)]
    most = 1 / (1 - discount)
    counting = [Clock(0.0, discount, most, most, horizon) for horizon in horizons(discount)]
    return [Clock(1 - discount, 1.0, 1.0, 1.0, None), *counting]


class Spent(NamedTuple):
    """The time of rollouts, of several runs."""

    there: FloatArray  # [2A, R, M] in the sets, and then outside of them: at least
    most: FloatArray  # [R, M] until the end: at most
    complete: IntArray  # [R] how many rollouts there were all entries for


class Rolling(NamedTuple):
    """A policy that is rolled out, and the sets of states whose time is looked at."""

    policy: Policy
    sets: BoolArray  # [A, S]
    over: BoolArray  # [S] where episodes are over
    readable: BoolArray  # [K] other pairs cut a rollout
    seed: int

    def rolled(self, stacks: Stacks, clock: Clock, purpose: int, runs: int) -> Spent:
        """Returns the time of rollouts; they are the same for all sets, but for what is counted."""
        pairs, everywhere = self.policy.pairs, np.ones(self.over.size, np.bool_)
        where = pairs.state[run_owners(stacks.offsets)]
        none, with_stops, course = np.zeros(where.size), self.with_stops(stacks), self.course(clock)
        readable = np.zeros(pairs.num_pairs + pairs.num_states, np.bool_)
        readable[self.places] = self.readable

        def case(there: BoolArray, left: float) -> Case:
            reward = none if clock.stop > 0 else there[where].astype(np.float64)
            return Case(
                with_stops._replace(reward=reward),
                course._replace(tails=self.tails(clock, there, left)),
                readable,
                self.seed,
                min(stacks.starts.size, MOST_ROLLOUTS),
            )

        cases = [case(everywhere, clock.most), case(everywhere, 0.0)]
        cases += [case(there, 0.0) for there in self.sets]
        way = Way(OURS, clock.horizon, clock.horizon)
        rounds = roll_out_each(cases, [way] * len(cases), purpose, runs)
        most, whole, *parts = (one.differences for one in rounds)
        inside = np.stack(parts)
        return Spent(
            np.concatenate([inside, whole - inside]),
            np.minimum(most, clock.most),
            rounds[0].complete,
        )

    @property
    def places(self) -> IntArray:
        """Returns the place [K] of each pair where every state has a stop after its actions."""
        pairs = self.policy.pairs
        return np.arange(pairs.num_pairs) + pairs.state

    def with_stops(self, stacks: Stacks) -> Stacks:
        """Returns the stacks with an empty one for the stop in each state."""
        sizes = np.zeros(self.readable.size + self.over.size, np.int64)
        sizes[self.places] = stacks.sizes
        return stacks._replace(offsets=offsets_of(sizes))

    def course(self, clock: Clock) -> Course:
        """Returns the course of the policy, who is paid nothing yet where rollouts stop."""
        pairs = self.policy.pairs
        chosen = np.full(pairs.num_pairs + pairs.num_states, clock.stop)
        chosen[self.places] = (1 - clock.stop) * self.policy.probability
        offsets = pairs.offsets + np.arange(pairs.num_states + 1)
        chances = np.empty((2, 2 * chosen.size))
        coupled_chances(offsets, chosen, chosen, chances)
        return Course(
            offsets,
            chances,
            np.empty((0, pairs.num_states)),
            self.over,
            np.zeros((2, pairs.num_states)),
            Tails(np.zeros((2, chosen.size)), np.zeros((2, pairs.num_states))),
            clock.discount,
            (0.0, clock.most),
        )

    def tails(self, clock: Clock, there: BoolArray, left: float) -> Tails:
        """Returns what is paid where rollouts stop: 1 in the states that are `there` [S].

        So much time is `left` where it takes a pair that is not readable.
        """
        pairs = self.policy.pairs
        at_pair = np.full((2, pairs.num_pairs + pairs.num_states), left)
        at_pair[:, pairs.offsets[1:] + np.arange(pairs.num_states)] = there
        return Tails(at_pair, np.full((2, pairs.num_states), min(left, clock.left)))


class Bet(NamedTuple):
    """The stake of a bet on a share, and the lower bound that fold 1 expects of it."""

    stake: float
    score: float


def bets_on(time: Spent, clock: Clock, ratio: float, delta: float) -> list[Bet]:
    """Returns the bets [2A] on shares, by rollouts on fold 1.

    With p the share there, v the variance of X − pY, m rollouts to be expected and the stake λ, the
    lower bound to be expected is p − (ln(q/δ)/(λm) + λv/2) / E Y.
    """
    made = np.arange(time.most.shape[1]) < time.complete[:, np.newaxis]
    whole = time.most[made]
    if not whole.any():
        return [Bet(0.0, 0.0)] * len(time.there)
    number, smallest = ratio * float(time.complete.mean()), SMALLEST_SPREAD * clock.most
    bets = []
    for part in time.there:
        share = float(part[made].mean() / whole.mean())
        variance = max(float(((part[made] - share * whole) ** 2).mean()), smallest**2)
        stake = usual_stake(number, variance, delta)
        capped = min(stake, LARGEST_SHARE / max(share * clock.most, smallest))
        lost = log_goal(delta) / (capped * number) + capped * variance / 2
        bets.append(Bet(stake, share - lost / float(whole.mean())))
    return bets

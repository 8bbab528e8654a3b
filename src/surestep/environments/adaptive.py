"""Adaptive loggers: a bandit algorithm made the log, and learnt from episode to episode.

Counts of such a log are no fair sample: an action that began badly is tried less often afterwards,
so what is known of it stays as bad as it was.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.environments.benchmark import Benchmark, Truth
from surestep.environments.building import Seed, Share
from surestep.environments.families import Arms, bandit, nearly_alike
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.policy import Policy
from surestep.sampling import ends_without_decision, log_of_transitions, summed


def adaptive(seed: Seed = 1, effect: Share = 0.05, epsilon: Share = 0.3) -> Benchmark:
    """Builds `nearly-alike` with a log of an ε-greedy learner; π_b is what was done before."""
    plain = nearly_alike(seed, effect)
    return replace(plain, name="adaptive", simulator=Learner(mdp=plain.mdp, epsilon=epsilon))


def adaptive_bandit(
    seed: Seed = 1, arms: Arms = 10, effect: Share = 0.2, epsilon: Share = 0.3
) -> Benchmark:
    """Builds `bandit` with a log of an ε-greedy learner; π_b is what was done before."""
    plain = bandit(seed, arms, effect)
    return replace(plain, name="adaptive/bandit", simulator=Learner(mdp=plain.mdp, epsilon=epsilon))


@dataclass(frozen=True, slots=True, kw_only=True)
class Learner:
    """A logger that follows a policy with probability ε, else what has paid best so far.

    What paid best in a state is the action with the largest mean of the discounted returns that
    followed it in earlier episodes. Where none was tried, the policy decides.
    """

    mdp: FiniteMDP
    epsilon: float

    @property
    def truth(self) -> Truth:
        """Returns the model itself: only the logger is unusual."""
        return Truth(self.mdp, np.arange(self.mdp.num_pairs))

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a learner that begins with the policy, episode after episode."""
        mdp, over = self.mdp, ends_without_decision(self.mdp, policy)
        decide = Draws(mdp.pairs.offsets, policy.probability)
        move = Draws(mdp.offsets, mdp.probability)
        begin = Draws(np.array([0, mdp.num_states]), mdp.initial)
        memory = Memory(mdp)
        taken: list[int] = []
        lengths = np.empty(episodes, np.int64)
        for episode in range(episodes):
            first, chances = len(taken), rng.random(3 * horizon + 1).tolist()
            state = begin.one(0, chances.pop())
            while len(taken) - first < horizon and not over[state]:
                pair = memory.best[state] if chances.pop() >= self.epsilon else -1
                uniform = chances.pop()
                pair = decide.one(state, uniform) if pair < 0 else pair
                transition = move.one(pair, chances.pop())
                taken.append(transition)
                state = int(mdp.successor[transition])
            lengths[episode] = len(taken) - first
            memory.learn(taken[first:])
        return log_of_transitions(mdp, over, arrays.offsets_of(lengths), np.array(taken, np.int64))


class Draws:
    """Draws of one element at a time from runs of probabilities, from uniform numbers."""

    def __init__(self, offsets: IntArray, probability: FloatArray) -> None:
        self.offsets = offsets.tolist()
        self.sums = summed(offsets, probability).tolist()

    def one(self, run: int, uniform: float) -> int:
        """Returns the element of the run at which its running sums pass `uniform`."""
        first, last = self.offsets[run], self.offsets[run + 1]
        return bisect_right(self.sums, uniform * self.sums[last - 1], first, last - 1)


class Memory:
    """The knowledge of a learner: the mean return after each pair, and each state's best pair."""

    def __init__(self, mdp: FiniteMDP) -> None:
        self.owner = np.repeat(np.arange(mdp.num_pairs), np.diff(mdp.offsets)).tolist()
        self.reward, self.discount = mdp.reward.tolist(), float(mdp.discount[0])
        self.state, self.offsets = mdp.pairs.state.tolist(), mdp.pairs.offsets.tolist()
        self.visits, self.total = [0] * mdp.num_pairs, [0.0] * mdp.num_pairs
        self.best = [-1] * mdp.num_states  # −1: nothing was tried

    def learn(self, transitions: list[int]) -> None:
        """Adds what followed each step of an episode that is over."""
        returned, states = 0.0, set()
        for transition in reversed(transitions):
            returned = self.reward[transition] + self.discount * returned
            pair = self.owner[transition]
            self.visits[pair] += 1
            self.total[pair] += returned
            states.add(self.state[pair])
        for state in states:
            tried = (
                pair
                for pair in range(self.offsets[state], self.offsets[state + 1])
                if self.visits[pair]
            )
            self.best[state] = max(tried, key=lambda pair: self.total[pair] / self.visits[pair])

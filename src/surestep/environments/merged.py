"""A log that shows less than there is: states of a finite model that it does not tell apart.

Merged states make a log that is not Markov, or one whose rewards are noisy (successors that differ
in what they pay), or one that leaves out how an episode ended. What policies are worth is known
exactly all the same: in the finer model, where a policy does the same in all states of one group.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import FloatArray, IntArray
from surestep.environments.benchmark import Truth
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy
from surestep.sampling import sample_log


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Merged:
    """Logs of a finer model in which each of its states is shown as one of `pairs`.

    States that are shown as one have the same actions.
    """

    mdp: FiniteMDP  # the finer model
    pairs: Pairs  # what the log shows
    shown: IntArray  # [S of mdp] as which state of the log
    truth: Truth = field(init=False)

    def __post_init__(self) -> None:
        """Freezes the array and finds the pair of the log of each pair of the model."""
        shown = arrays.freeze(np.asarray(self.shown, np.int64))
        own_pairs = self.mdp.pairs
        pair = self.pairs.find(shown[own_pairs.state], own_pairs.action)
        object.__setattr__(self, "shown", shown)
        object.__setattr__(self, "truth", Truth(self.mdp, pair))

    __eq__ = arrays.equal_by_value
    __hash__ = None  # type: ignore[assignment]
    __setstate__ = arrays.restore_frozen

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees what the log shows."""
        return self.log_of(self.truth.acting(policy), episodes, horizon, rng)

    def log_of(
        self, acting: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees the states of the finer model."""
        log = sample_log(self.mdp, acting, episodes, horizon, rng)
        return DecisionLog(
            self.pairs,
            self.shown[log.state],
            log.action,
            log.reward,
            self.shown[log.next_state],
            log.terminated,
            log.truncated,
            log.episode_offsets,
        )

    def model(self, visits: FloatArray) -> FiniteMDP:
        """Returns what very many logs would show of the finer model, visited in these shares.

        P̄(s'|s,a) = Σ_x w(x,a) P(s'|x,a) / Σ_x w(x,a) over the states x that are shown as s, with
        w = `visits` [K of mdp], or equal where all of them are 0; rewards are means alike.
        """
        fine, pair = self.mdp, self.truth.pair
        total = np.bincount(pair, visits, self.pairs.num_pairs)
        weight = np.where(total[pair] > 0, visits, 1.0)
        owner, size = arrays.run_owners(fine.offsets), np.int64(self.pairs.num_states)
        taken = weight[owner] * fine.probability
        key, place = np.unique(pair[owner] * size + self.shown[fine.successor], return_inverse=True)
        mass = np.bincount(place, taken)
        earned = np.bincount(place, taken * fine.reward)
        above, successor = key // size, key % size
        row = np.bincount(above, mass, self.pairs.num_pairs)
        return FiniteMDP(
            self.pairs,
            arrays.own(arrays.offsets_of(np.bincount(above, minlength=self.pairs.num_pairs))),
            successor,
            mass / row[above],
            earned / mass,
            np.full(self.pairs.num_pairs, fine.discount[0]),
            np.bincount(self.shown, fine.initial, self.pairs.num_states).astype(np.float64),
        )


def expected_visits(mdp: FiniteMDP, policy: Policy, horizon: int) -> FloatArray:
    """Returns how often an episode takes each pair [K] within `horizon` steps, on average."""
    owner, state = arrays.run_owners(mdp.offsets), mdp.pairs.state
    at: FloatArray = mdp.initial
    visits = np.zeros(mdp.num_pairs)
    for _ in range(horizon):
        taken = at[state] * policy.probability
        visits += taken
        moved = np.bincount(mdp.successor, taken[owner] * mdp.probability, mdp.num_states)
        at = moved.astype(np.float64, copy=False)
    return visits

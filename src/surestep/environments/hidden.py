"""Builds benchmarks whose logs merge states of a finite model, and so hide information.

Merged states make a log that is not Markov, or a log with noisy rewards (merged successors pay
different rewards), or a log that hides the outcome of an episode. The values of policies are still
known exactly, from the finer model: there a policy acts alike in all states of one group.

*A hidden cause: doctors treat the severe patients, and the log does not show the severity.*
There are ten wards on the way to recovery. In every step a patient is mild or severe with equal
chances, independently of the past; a mild patient moves on, a severe one falls back or dies. The
decision, to wait or to treat, has no effect, but severe patients are treated more often: the log
makes treatment look harmful, and every policy is worth the same.
"""

from dataclasses import dataclass, field, replace

import numpy as np

import surestep._arrays as arrays
from surestep.environments.benchmark import Benchmark, Portion, Truth
from surestep.model import DecisionLog, FiniteMDP, Pairs, Policy
from surestep.sampling import sample_log


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Merged(arrays.ByValue):
    """Makes logs of a finer model that show each of its states as a state of `pairs`.

    States that are shown as one state have the same actions.
    """

    mdp: FiniteMDP  # the finer model
    pairs: Pairs  # the pairs of the log
    shown: arrays.IntArray  # [S of mdp] the state of the log that each state is shown as
    truth: Truth = field(init=False)

    def __post_init__(self) -> None:
        """Freezes the array, and finds the pair of the log for each pair of the model."""
        arrays.keep(
            self,
            shown=self.shown,
            truth=Truth(
                self.mdp, self.pairs.find(self.shown[self.mdp.pairs.state], self.mdp.pairs.action)
            ),
        )

    __setstate__ = arrays.restore_frozen

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of a policy that sees the states of the log."""
        log = sample_log(self.mdp, self.acting(policy), episodes, horizon, rng)
        return replace(
            log,
            pairs=self.pairs,
            state=self.shown[log.state],
            next_state=self.shown[log.next_state],
        )

    def acting(self, policy: Policy) -> Policy:
        """Returns the policy as it acts in the finer model."""
        return self.truth.acting(policy)

    def model(self, visits: arrays.FloatArray) -> FiniteMDP:
        """Returns the model that very many logs show, if pairs are visited in these shares.

        P̄(s'|s,a) = Σ_x w(x,a) P(s'|x,a) / Σ_x w(x,a) over the states x that are shown as s, with
        w = `visits` [K of mdp], or equal weights if all of them are 0; rewards are such means, too.
        """
        fine = self.mdp
        pair = self.truth.pair
        total = np.bincount(pair, visits, self.pairs.num_pairs)
        weight = np.where(total[pair] > 0, visits, 1.0)
        owner = arrays.run_owners(fine.offsets)
        size = np.int64(self.pairs.num_states)
        taken = weight[owner] * fine.probability
        key, place = np.unique(pair[owner] * size + self.shown[fine.successor], return_inverse=True)
        mass = np.bincount(place, taken)
        earned = np.bincount(place, taken * fine.reward)
        above = key // size
        row = np.bincount(above, mass, self.pairs.num_pairs)
        return FiniteMDP(
            self.pairs,
            arrays.own(arrays.offsets_of(np.bincount(above, minlength=self.pairs.num_pairs))),
            key % size,
            mass / row[above],
            earned / mass,
            np.full(self.pairs.num_pairs, fine.discount[0]),
            np.bincount(self.shown, fine.initial, self.pairs.num_states).astype(np.float64),
        )


def expected_visits(mdp: FiniteMDP, policy: Policy, horizon: int) -> arrays.FloatArray:
    """Returns the mean number of times that an episode takes each pair [K] in `horizon` steps."""
    owner = arrays.run_owners(mdp.offsets)
    at: arrays.FloatArray = mdp.initial
    visits = np.zeros(mdp.num_pairs)
    for _ in range(horizon):
        taken = at[mdp.pairs.state] * policy.probability
        visits += taken
        moved = taken[owner] * mdp.probability
        at = np.bincount(mdp.successor, moved, mdp.num_states).astype(np.float64, copy=False)
    return visits


# ---- a hidden cause ---------------------------------------------------------------------------

WARDS = 10
RECOVERED, DIED = WARDS, WARDS + 1
PLACES = WARDS + 2
SEVERITIES = 2  # mild, severe
DECISIONS = ("wait", "treat")
# chances to move on, to stay, to fall back and to die
COURSE = ((0.9, 0.1, 0.0, 0.0), (0.0, 0.5, 0.45, 0.05))
DISCOUNT_OF_WARDS = 0.99
LONGEST_STAY = 200


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Doctors(Merged):
    """Makes logs of doctors who follow a policy on average, but know the severity of each case.

    If the policy treats with probability p, they treat severe patients with p + κ and mild ones
    with p − κ, κ = tilt · min(p, 1 − p).
    """

    tilt: float

    __setstate__ = arrays.restore_frozen

    def acting(self, policy: Policy) -> Policy:
        """Returns the policy of the doctors, who know the severity."""
        plain = self.truth.acting(policy).dense()
        lean = self.tilt * plain.min(axis=1) * np.where(np.arange(len(plain)) % 2, 1.0, -1.0)
        return Policy.from_dense(self.mdp, plain + np.stack([-lean, lean], axis=1))


def hidden_cause(tilt: Portion = 0.6) -> Benchmark:
    """Builds twelve states in which doctors act on a severity that the log does not show.

    π_b treats half of the patients: with the default tilt 0.8 of the severe and 0.2 of the mild.
    The model is the one that very many episodes show.
    """
    pairs = Pairs.full(
        PLACES,
        len(DECISIONS),
        state_labels=(*(f"ward {ward}" for ward in range(WARDS)), "recovered", "died"),
        action_labels=DECISIONS,
    )
    rows = course_of_patients()
    prize = np.repeat(np.arange(PLACES) == RECOVERED, SEVERITIES).astype(np.float64)
    mdp = FiniteMDP.from_dense(
        rows,
        np.broadcast_to(prize, rows.shape),
        DISCOUNT_OF_WARDS,
        np.repeat(np.arange(PLACES) == 0, SEVERITIES) / SEVERITIES,
        action_labels=DECISIONS,
    )
    doctors = Doctors(
        mdp=mdp, pairs=pairs, shown=np.repeat(np.arange(PLACES), SEVERITIES), tilt=tilt
    )
    behavior = Policy.uniform(pairs)
    return Benchmark(
        name="hidden-cause",
        mdp=doctors.model(expected_visits(mdp, doctors.acting(behavior), LONGEST_STAY)),
        behavior=behavior,
        horizon=LONGEST_STAY,
        value_bounds=(0.0, 1.0),  # the reward of 1 is paid once
        simulator=doctors,
    )


def course_of_patients() -> arrays.FloatArray:
    """Returns P [(ward, severity), action, (ward, severity)]; decisions have no effect."""
    after = np.zeros((PLACES, SEVERITIES, PLACES))
    for ward in range(WARDS):
        targets = [ward + 1, ward, max(ward - 1, 0), DIED]  # of which two may be the same
        np.add.at(after[ward].T, targets, np.transpose(COURSE))
    flat = np.repeat(after.reshape(-1, PLACES) / SEVERITIES, SEVERITIES, axis=1)
    return np.repeat(flat[:, np.newaxis], len(DECISIONS), axis=1)

"""Builds benchmarks whose logs merge states of a finite model, and so hide information.

Merged states make a log that is not Markov, or a log with noisy rewards (merged successors pay
different rewards), or a log that hides the outcome of an episode. The values of policies are still
known exactly, from the finer model: there a policy acts alike in all states of one group.

*Tiger: the log shows only signs of the hidden state.*
This is a check environment of Simão, Suilen and Jansen (AAAI 2023), with the numbers of their
package `pogym`: an episode begins with a sound, and opening a door ends it. A state of the log is
the present sound and the last `memory` sounds before it. The log is no Markov process, but the
values of its policies are known exactly, from the model of the tiger and the remembered sounds.

π_b depends on the present sound only: it is the softmax of the best action values in the model that
very many episodes of a uniform policy would show (in the original, of Q-learning).

*A hidden cause: doctors treat the severe patients, and the log does not show the severity.*
There are ten wards on the way to recovery. In every step a patient is mild or severe with equal
chances, independently of the past; a mild patient moves on, a severe one falls back or dies. The
decision, to wait or to treat, has no effect, but severe patients are treated more often: the log
makes treatment look harmful, and every policy is worth the same.
"""

import itertools
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep.environments.benchmark import Benchmark, Portion, Truth
from surestep.model import DecisionLog, FiniteMDP, Pairs, Policy
from surestep.planning import optimal, q_values
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


# ---- a tiger behind a door --------------------------------------------------------------------

DISCOUNT = 0.95
HORIZON = 100
SIDES = ("left", "right")
HEARD = ((0.85, 0.15), (0.15, 0.85))  # the chances of the sounds, for each side of the tiger
SHARPNESS = 0.05  # the inverse temperature of the softmax of π_b


def tiger(memory: Annotated[int, Meta(ge=0, le=3)] = 1) -> Benchmark:
    """Builds Tiger, a tiger behind one of two doors; to listen costs 1, and is right in 85 %.

    The tiger's door pays −100, the other door 10 (Cassandra, Kaelbling and Littman 1994; there an
    episode goes on after a door).
    """
    plain = tiger_log(0)
    seen = plain.model(expected_visits(plain.mdp, Policy.uniform(plain.mdp), HORIZON))
    by_sound = Policy.softmax(seen, q_values(seen, optimal(seen).value), 1 / SHARPNESS).dense()
    log = tiger_log(memory)
    # The remembered sounds end with the present one: left in every other state, else right.
    present = np.append(np.arange(log.pairs.num_states - 1) % len(SIDES), -1)
    behavior = Policy.from_dense(log.pairs, by_sound[present])
    return Benchmark(
        name="tiger",
        mdp=log.model(expected_visits(log.mdp, log.acting(behavior), HORIZON)),
        behavior=behavior,
        horizon=HORIZON,
        value_bounds=(-100.0, 10.0),  # to listen for ever costs 20
        simulator=log,
    )


def tiger_log(memory: int) -> Merged:
    """Returns the model of Tiger, whose log shows the remembered sounds, and not the tiger.

    A state is the tiger's side with the remembered sounds, which are fewer at the beginning of an
    episode. In one more state, the last, the episode is over.
    """
    sounds = [
        heard
        for length in range(1, memory + 2)
        for heard in itertools.product(range(2), repeat=length)
    ]
    number = {heard: place for place, heard in enumerate(sounds)}
    over = 2 * len(sounds)
    chance = np.zeros((over + 1, 3, over + 1))
    reward = np.zeros((over + 1, 3, over + 1))
    initial = np.zeros(over + 1)
    for side, heard in itertools.product(range(2), sounds):
        here = side * len(sounds) + number[heard]
        for sound in range(2):
            there = side * len(sounds) + number[(*heard, sound)[-memory - 1 :]]
            chance[here, 0, there] = HEARD[side][sound]
            reward[here, 1 + sound, over] = -100.0 if sound == side else 10.0
        reward[here, 0] = -1.0
        chance[here, 1:, over] = 1.0
        if len(heard) == 1:
            initial[here] = 0.5 * HEARD[side][heard[0]]
    actions = ("listen", "open-left", "open-right")
    labels = [" listen ".join(SIDES[sound] for sound in heard) for heard in sounds]
    return Merged(
        mdp=FiniteMDP.from_dense(chance, reward, DISCOUNT, initial, action_labels=actions),
        pairs=Pairs.full(len(labels) + 1, 3, state_labels=(*labels, "over"), action_labels=actions),
        shown=np.append(np.tile(np.arange(len(sounds)), 2), len(sounds)),
    )


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
        back = max(ward - 1, 0)
        for severity, course in enumerate(COURSE):
            for target, chance in zip((ward + 1, ward, back, DIED), course, strict=True):
                after[ward, severity, target] += chance
    flat = np.repeat(after.reshape(-1, PLACES) / SEVERITIES, SEVERITIES, axis=1)
    return np.repeat(flat[:, np.newaxis], len(DECISIONS), axis=1)

"""A hidden cause: doctors who treat whom they see to be worse, and a log that does not show it.

Ten wards on the way to recovery. In every step a patient is mild or severe with equal chances,
whatever came before; a mild one moves on, a severe one falls back or dies. The decision, to wait or
to treat, changes nothing at all, but severe patients are treated more often: the log makes
treatment look harmful, and every policy is worth the same.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from surestep._arrays import FloatArray
from surestep.environments.benchmark import Benchmark, Truth
from surestep.environments.building import Share
from surestep.environments.merged import Merged, expected_visits
from surestep.model.log import DecisionLog
from surestep.model.mdp import FiniteMDP
from surestep.model.pairs import Pairs
from surestep.model.policy import Policy

WARDS = 10
RECOVERED, DIED = WARDS, WARDS + 1
STATES = WARDS + 2
SEVERITIES = 2  # mild, severe
ACTIONS = ("wait", "treat")
# chances to move on, to stay, to fall back and to die
COURSE = ((0.9, 0.1, 0.0, 0.0), (0.0, 0.5, 0.45, 0.05))
DISCOUNT = 0.99
HORIZON = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Doctors:
    """Doctors whose decisions follow a policy on average, and the severity in each case.

    Where the policy treats with probability p, they treat the severe with p + κ and the mild with
    p − κ, κ = tilt · min(p, 1 − p).
    """

    patients: Merged
    tilt: float

    @property
    def truth(self) -> Truth:
        """Returns the model with severities, in which policies that do not see them are judged."""
        return self.patients.truth

    def acting(self, policy: Policy) -> Policy:
        """Returns what they do, knowing the severity."""
        plain = self.truth.acting(policy).dense()
        lean = self.tilt * plain.min(axis=1) * np.where(np.arange(len(plain)) % 2, 1.0, -1.0)
        return Policy.from_dense(self.patients.mdp, plain + np.stack([-lean, lean], axis=1))

    def rollout(
        self, policy: Policy, episodes: int, horizon: int, rng: np.random.Generator
    ) -> DecisionLog:
        """Returns the log of the doctors, without the severities."""
        return self.patients.log_of(self.acting(policy), episodes, horizon, rng)


def hidden_cause(tilt: Share = 0.6) -> Benchmark:
    """Builds twelve states in which doctors act on a severity that the log does not show.

    π_b treats half of the patients: with the usual tilt 0.8 of the severe and 0.2 of the mild. The
    model is what very many episodes show.
    """
    labels = tuple(f"ward {ward}" for ward in range(WARDS))
    pairs = Pairs.full(
        STATES, len(ACTIONS), state_labels=(*labels, "recovered", "died"), action_labels=ACTIONS
    )
    rows = course_of_patients()
    prize = np.repeat(np.arange(STATES) == RECOVERED, SEVERITIES).astype(np.float64)
    mdp = FiniteMDP.from_dense(
        rows,
        np.broadcast_to(prize, rows.shape),
        DISCOUNT,
        np.repeat(np.arange(STATES) == 0, SEVERITIES) / SEVERITIES,
        action_labels=ACTIONS,
    )
    patients = Merged(mdp=mdp, pairs=pairs, shown=np.repeat(np.arange(STATES), SEVERITIES))
    doctors, behavior = Doctors(patients=patients, tilt=tilt), Policy.uniform(pairs)
    return Benchmark(
        name="hidden-cause",
        mdp=patients.model(expected_visits(mdp, doctors.acting(behavior), HORIZON)),
        behavior=behavior,
        horizon=HORIZON,
        value_bounds=(0.0, 1.0),  # the reward of 1 is paid once
        simulator=doctors,
    )


def course_of_patients() -> FloatArray:
    """Returns P [(ward, severity), action, (ward, severity)]: the decision changes nothing."""
    after = np.zeros((STATES, SEVERITIES, STATES))
    for ward in range(WARDS):
        back = max(ward - 1, 0)
        for severity, course in enumerate(COURSE):
            for target, chance in zip((ward + 1, ward, back, DIED), course, strict=True):
                after[ward, severity, target] += chance
    flat = np.repeat(after.reshape(-1, STATES) / SEVERITIES, SEVERITIES, axis=1)
    return np.repeat(flat[:, np.newaxis], len(ACTIONS), axis=1)

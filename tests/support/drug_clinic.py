"""A clinic with a known truth, in which a drug does other things to some patients than to others.

A patient is ill or very ill. Every week one decides to wait or to give the drug; then the patient
recovers (+10), dies (−10), or is ill or very ill for another week (−1).
"""

import numpy as np

import surestep

SEVERITY = ("ill", "very ill")
ACTIONS = ("wait", "drug")
RANGES = {"discount": 0.9, "running": (-1, -1), "ending": (-10, 10)}


def chances(effect):
    """Returns P[s, a, outcome] over ill, very ill, recovers, dies; `effect` is that of the drug."""
    wait = np.array([[0.35, 0.15, 0.25, 0.25], [0.15, 0.35, 0.2, 0.3]])
    drug = wait + effect * np.array([0.0, 0.0, 1.0, -1.0])
    return np.stack([wait, drug], axis=1)


def log(rng, episodes, groups, effects, column="group"):
    """Returns a log as a table; groups are drawn by their shares, and each has its effect.

    `wait` and `drug` have the same chance whatever the group.
    """
    names = [*groups]
    share = np.array([*groups.values()], float)
    rows = {name: [] for name in ("patient", "week", "severity", "do", "earned", "over", column)}
    laws = [chances(effects[name]) for name in names]
    for patient in range(episodes):
        who = int(rng.choice(len(names), p=share / share.sum()))
        state, week, over = int(rng.integers(2)), 0, False
        while not over:
            act = int(rng.integers(2))
            outcome = int(rng.choice(4, p=laws[who][state, act]))
            over = outcome > 1
            earned = {2: 10.0, 3: -10.0}.get(outcome, -1.0)
            row = (patient, week, SEVERITY[state], ACTIONS[act], earned, over, names[who])
            for key, value in zip(rows, row, strict=True):
                rows[key].append(value)
            state, week = outcome, week + 1
    return rows


def model(effect):
    """Returns the MDP of a group, with ends as states of their own."""
    P = np.zeros((4, 2, 4))
    P[:2] = chances(effect)
    R = np.zeros((4, 2, 4))
    R[:2] = [-1.0, -1.0, 10.0, -10.0]
    return surestep.FiniteMDP.from_dense(
        P, R, discount=RANGES["discount"], initial=[0.5, 0.5, 0, 0]
    )


def true_gain(effect, drug, before=(0.5, 0.5), start=(0.5, 0.5)):
    """Returns the gain of giving the drug with these chances, in both states."""
    mdp = model(effect)

    def value(often):
        table = [[1 - often[0], often[0]], [1 - often[1], often[1]], [0.5, 0.5], [0.5, 0.5]]
        return surestep.evaluate(mdp, surestep.Policy.from_dense(mdp, table))

    return float(np.array(start) @ (value(drug) - value(before))[:2])


COLUMNS = {
    "episode": "patient",
    "step": "week",
    "state": "severity",
    "action": "do",
    "reward": "earned",
    "terminated": "over",
}

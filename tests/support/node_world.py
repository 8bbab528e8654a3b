"""A world of two columns, with three kinds of nodes, and its values by linear solves.

The oracle knows the structure of this world by heart, and shares no code with the package.
"""

import numpy as np

from surestep.model.factored import ColumnRules
from surestep.model.structure import Structure

DISCOUNT = 0.8
# Two columns that share no node: heat of three values, a lamp that looks at the next heat; the end
# comes last, and is possible only if the lamp is on next.
WORLD = Structure.read(
    {"heat": ("low", "mid", "high"), "lamp": ("off", "on")},
    ("wait", "cool"),
    {
        "heat": {"parents": ["heat"], "action": {"cool": "cool"}},
        "lamp": {"parents": ["lamp", "next.heat"], "action": "none"},
        "end": {
            "parents": ["next.lamp"],
            "action": "none",
            "known": [{"next.lamp": "off", "is": "no"}],
        },
        "reward": {
            "terms": [{"of": "next.heat", "low": 1.0, "high": -2.0}, {"of": "action", "cool": -0.5}]
        },
    },
)
NODES = 6 + 6 + 2
EARNED = np.array([1.0, 0.0, -2.0])
OLD = ColumnRules.of(WORLD, [({"heat": "high"}, "cool")], "wait", chance=0.5)
NEW = ColumnRules.of(WORLD, [({"heat": ("mid", "high")}, "cool")], "wait")


def chances_of(law):
    """Heat [heat, action, next], lamp [lamp, next heat, next], and the end where the lamp is on."""
    chance = np.diff(law, axis=1, prepend=0.0)
    return chance[:6].reshape(3, 2, 3), chance[6:12, :2].reshape(2, 3, 2), chance[13, 1]


def dense(law):
    """The chances [s, a, s′] to go on, s = 2·heat + lamp, and the mean rewards [s, a]."""
    heat, lamp, end = chances_of(law)
    on = np.zeros((6, 2, 6))
    earned = np.zeros((6, 2))
    for h in range(3):
        for b in range(2):
            for a in range(2):
                earned[2 * h + b, a] = heat[h, a] @ EARNED - 0.5 * a
                for after in range(3):
                    for light in range(2):
                        chance = heat[h, a, after] * lamp[b, after, light]
                        on[2 * h + b, a, 2 * after + light] = chance * (1 - end * light)
    return on, earned


def exact(law, policy):
    """The value of every state by one linear solve."""
    on, earned = dense(law)
    states = np.array([(h, b) for h in range(3) for b in range(2)])
    chances = policy.chances(states)
    matrix = np.eye(6) - DISCOUNT * np.einsum("sa,sat->st", chances, on)
    return np.linalg.solve(matrix, (chances * earned).sum(axis=1))

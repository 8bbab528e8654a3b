"""What the test of a structure shows: false alarms, and how often wrong structures are noticed.

    python benchmarks/structure.py [--logs 100] [--episodes 300]

A ring of 6 machines is logged for 40 steps an episode. A machine stays up with a chance of 0.9, and
one that is down comes up with 0.3; 30 % of the steps reset a random machine, the others reset the
first one that is down. Beside them is the weather, which is bad in a share of the steps. The
structure says that a machine depends on itself and its own reset. In truth the chance of 0.9 is
lower by ε in some cases: see `KINDS`. Printed are the share of logs in which the test fails, and
the natural logarithm of the largest e-value over the number of comparisons (median).
"""

import argparse

import numpy as np

from surestep.checks import check_structure
from surestep.model import FactoredLog, Structure

SMALLEST = ("--logs", "1", "--episodes", "20")
MACHINES, STEPS, STAYS, COMES = 6, 40, 0.9, 0.3
KINDS = {
    "nothing": "the structure is true",
    "parent": "a parent is missing: bad weather",
    "members": "machine 0 differs",
    "together": "columns of a step: the machine before went down",
    "time": "the second half of the log differs",
    "reset": "a neighbour's reset matters",
}
CELLS = [
    ("nothing", 0.0, 0.5),
    *(("parent", effect, share) for share in (0.5, 0.1, 0.02) for effect in (0.01, 0.02, 0.03)),
    ("parent", 0.06, 0.02),
    *((kind, effect, 0.5) for kind in [*KINDS][2:] for effect in (0.01, 0.02, 0.03, 0.05)),
]


def structure() -> Structure:
    """Returns what is said of the ring."""
    names = [f"machine_{i}" for i in range(MACHINES)]
    columns = dict.fromkeys(names, ("down", "up")) | {"weather": ("good", "bad")}
    table = {
        "machine_*": {
            "parents": ["@"],
            "action": {"reset": "reset_@"},
            "known": [{"action": "reset", "is": "up"}],
        },
        "weather": {"parents": [], "action": "none"},
    }
    return Structure.read(columns, [*(f"reset_{i}" for i in range(MACHINES)), "wait"], table)


def logged(kind: str, effect: float, share: float, episodes: int, seed: int) -> FactoredLog:
    """Returns a log of the ring in which something matters that the structure leaves out."""
    rng = np.random.default_rng(seed)
    state = np.ones((episodes, STEPS + 1, MACHINES + 1), np.int16)
    state[:, :, -1] = rng.random((episodes, STEPS + 1)) < share
    action = np.empty((episodes, STEPS), np.int64)
    late = np.arange(episodes) >= episodes // 2
    for t in range(STEPS):
        up = state[:, t, :-1] == 1
        first = np.where(up.all(axis=1), MACHINES, up.argmin(axis=1))
        drawn = rng.integers(MACHINES + 1, size=episodes)
        action[:, t] = np.where(rng.random(episodes) < 0.3, drawn, first)
        for i in range(MACHINES):
            before = state[:, t + 1, i - 1] == 0
            changed = {
                "nothing": np.zeros(episodes, np.bool_),
                "parent": state[:, t, -1] == 1,
                "members": np.full(episodes, i == 0),
                "together": before & (i > 0),
                "time": late,
                "reset": action[:, t] == (i - 1) % MACHINES,
            }[kind]
            chance = np.where(up[:, i], STAYS - effect * changed, COMES)
            stays = rng.random(episodes) < chance
            state[:, t + 1, i] = stays | (action[:, t] == i)
    return FactoredLog(
        structure=structure(),
        state=state[:, :-1].reshape(-1, MACHINES + 1),
        action=action.ravel(),
        next_state=state[:, 1:].reshape(-1, MACHINES + 1),
        ended=np.zeros(action.size, np.bool_),
        offsets=np.arange(episodes + 1) * STEPS,
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=300)
    given = parser.parse_args()
    print("what is wrong                                      share effect  noticed evidence")
    for kind, effect, share in CELLS:
        logs = (logged(kind, effect, share, given.episodes, seed) for seed in range(given.logs))
        found = [check_structure(log) for log in logs]
        print(
            f"{KINDS[kind]:50} {share if kind == 'parent' else '':>5} {effect:6} "
            f"{np.mean([one.failed for one in found]):8.0%} "
            f"{np.median([one.evidence for one in found]):8.1f}",
            flush=True,
        )


if __name__ == "__main__":
    main()

"""How often a gain is believed beside a structure where no action matters, and losses are rare.

    python benchmarks/rare_losses.py [--logs 300]

Each step earns −50 with a small chance, else 0 or 1, whatever is done. Practice goes in 90 % of
1,000 steps, and the new policy in all; or practice is said to take both actions alike, where
somebody quits after the first loss, and the new policy only waits. Printed are the shares of logs
in which `NodePosterior` believes in a gain from the 700 steps that judge: under its four priors,
and under the first of them alone (δ = 0.1).
"""

import argparse

import numpy as np

from surestep.certificates import NodePosterior
from surestep.certificates.node_law import drawn_laws
from surestep.certificates.node_posterior import posterior_weights
from surestep.model import FactoredLog, Structure

SMALLEST = ("--logs", "1")
ALIKE = Structure.read(
    {"light": ("red", "green")},
    ["wait", "go"],
    {
        "light": {"parents": [], "action": "none"},
        "reward": {"values": [-50, 0, 1], "parents": [], "action": "all"},
    },
)


def alike(seed: int, disaster: float, *, quits: bool, steps: int = 1000) -> FactoredLog:
    """A log of one-step episodes whose rewards owe nothing to the action.

    Practice goes in 90 %. A logger who quits goes or waits until the first loss at going, and only
    waits from then on.
    """
    rng = np.random.default_rng(seed)
    reward = rng.choice([-50.0, 0.0, 1.0], p=[disaster, 0.5 - disaster, 0.5], size=steps)
    light = rng.integers(2, size=(steps + 1, 1))
    action = (rng.random(steps) < (0.5 if quits else 0.9)).astype(np.int64)
    lost = np.flatnonzero((reward < 0) & (action == 1))
    if quits and lost.size:
        action[lost[0] + 1 :] = 0
    return FactoredLog(
        structure=ALIKE,
        state=light[:-1],
        action=action,
        next_state=light[1:],
        ended=np.zeros(steps, np.bool_),
        offsets=np.arange(steps + 1),
        reward=reward,
    )


def wrong_beliefs(logs: int, disaster: float, *, quits: bool = False, priors: int = 4) -> int:
    """Counts logs in which the action never tried less, or only waiting, is believed to gain.

    The mean rewards of drawn laws are exact here, so that no noise of rollouts hides a mistake.
    """
    wrong = 0
    for seed in range(logs):
        judging = alike(seed, disaster, quits=quits, steps=700)
        rng = np.random.default_rng(seed)
        lower = []
        for weights in posterior_weights(judging, 5.0)[:priors]:
            laws = drawn_laws(weights[-2:], 200, rng)  # of the reward: wait, go
            mean = np.diff(laws, axis=2, prepend=0.0) @ [-50.0, 0.0, 1.0]
            gains = mean[:, 0] - mean[:, 1] if quits else mean[:, 1] - mean[:, 0]
            lower.append(np.sort(gains)[NodePosterior().rank - 1])
        wrong += min(lower) > 0
    return wrong


def main() -> None:
    """Prints a line for each world."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=300)
    logs = parser.parse_args().logs
    print("practice    chance of -50  believed  by one prior")
    for quits in (False, True):
        for disaster in (0.0003, 0.001, 0.003):
            four, one = (
                wrong_beliefs(logs, disaster, quits=quits, priors=priors) / logs
                for priors in (4, 1)
            )
            print(f"{'quits' if quits else 'goes':10} {disaster:14} {four:9.0%} {one:13.0%}")


if __name__ == "__main__":
    main()

"""Two-successor forms of a large model.

    python benchmarks/transforms.py [--states 1000000]

2 actions, 5 successors a pair: 10⁶ states have 10⁷ transitions and become 7·10⁶ states. The second
side is what the same checks cost anyway: making the original model from its arrays.
"""

import argparse
import time

import numpy as np

from surestep import FiniteMDP, Pairs
from surestep.transforms import two_successor

# The arguments of the quickest run.
SMALLEST = ("--states", "100")
ACTIONS, SUCCESSORS = 2, 5


def random_model(states: int) -> tuple[FiniteMDP, float]:
    """A random sparse model, and the seconds that its construction took."""
    rng = np.random.default_rng(0)
    pairs = Pairs.full(states, ACTIONS)
    shape = (states * ACTIONS, SUCCESSORS)
    successor = np.sort(rng.integers(0, states - SUCCESSORS + 1, shape), axis=1)
    successor += np.arange(SUCCESSORS)
    probability = rng.random(shape)
    probability /= probability.sum(axis=1, keepdims=True)
    reward, discount = rng.random(successor.size), np.full(len(successor), 0.95)
    start = time.perf_counter()
    model = FiniteMDP(
        pairs,
        np.arange(len(successor) + 1) * SUCCESSORS,
        successor.ravel(),
        probability.ravel(),
        reward,
        discount,
        np.eye(1, states)[0],
    )
    return model, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=1_000_000)
    model, making = random_model(parser.parse_args().states)
    print(
        f"{model.num_states:,} states, {model.num_transitions:,} transitions, made in "
        f"{making:.2f} s"
    )
    two_successor(random_model(100)[0])  # compiles, or loads, the kernels
    start = time.perf_counter()
    split = two_successor(model)
    there = time.perf_counter() - start
    print(
        f"{there:.2f} s to {split.mdp.num_states:,} states ({there / making:.1f} times making the "
        "model)"
    )


if __name__ == "__main__":
    main()

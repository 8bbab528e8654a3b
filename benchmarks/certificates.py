"""How long certificates take.

    python benchmarks/certificates.py [--large 10000]

Small: 50 trajectories of Wet Chicken and of Gridworld, 25 states each. Large: a random model with 2
actions and 5 seen successors a pair: 10⁴ states have 10⁵ transitions in the counts.
"""

import argparse
import time

import numpy as np

from surestep import Counts, Pairs, Policy, Problem, certify
from surestep.algorithms import SPIBB
from surestep.certificates import Certifier, Posterior
from surestep.environments import make
from surestep.model.counts import LoggedRewards

ACTIONS, SUCCESSORS, VISITS = 2, 5, 20


def small(name: str, n_wedge: int) -> tuple[str, Problem, Policy]:
    """A benchmark with 50 trajectories, and SPIBB's policy for it."""
    benchmark = make(name)
    problem = benchmark.problem(benchmark.sample(50, np.random.default_rng(0)))
    return name, problem, SPIBB(n_wedge=n_wedge).improve(problem).policy


def large(states: int) -> tuple[str, Problem, Policy]:
    """Counts of a random sparse model, and a policy that takes the better of two actions."""
    rng = np.random.default_rng(0)
    pairs = Pairs.full(states, ACTIONS)
    shape = (pairs.num_pairs, SUCCESSORS)
    successor = np.sort(rng.integers(0, states - SUCCESSORS + 1, shape), axis=1)
    successor += np.arange(SUCCESSORS)
    times = 1 + rng.multinomial(VISITS - SUCCESSORS, np.full(SUCCESSORS, 0.2), len(successor))
    reward = rng.random(pairs.num_pairs)
    starts = np.zeros(states, int)
    starts[0] = 1000
    counts = Counts(
        pairs,
        np.arange(pairs.num_pairs + 1) * SUCCESSORS,
        successor.ravel(),
        times.ravel(),
        LoggedRewards(reward, "pair", True),
        starts,
    )
    problem = Problem(
        counts=counts, behavior=Policy.uniform(counts), discount=0.95, value_bounds=(0.0, 20.0)
    )
    better = Policy.deterministic(pairs, reward.reshape(states, ACTIONS).argmax(axis=1))
    return f"random, {successor.size:,} transitions", problem, better


def report(certifier: Certifier, name: str, problem: Problem, policy: Policy) -> None:
    """Prints the time of the second call: the first compiles, or loads, the kernels."""
    seconds = []
    for _ in range(1 if problem.num_states > 1000 else 2):
        start = time.perf_counter()
        found = certify(problem, policy, certifier)
        seconds.append(time.perf_counter() - start)
    print(
        f"{certifier.name:10} {name:28} {problem.num_states:7,} states {seconds[-1]:8.2f} s   "
        f"L = {found.lower:.4g}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, default=10_000, help="states of the large model")
    states = parser.parse_args().large
    for case in (small("wet-chicken", 10), small("gridworld", 27), large(states)):
        report(Posterior(), *case)


if __name__ == "__main__":
    main()

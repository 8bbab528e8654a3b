"""How long certificates take.

    python benchmarks/certificates.py [--large 10000] [--robust 25] [--rehearsal 1000]

Small: 50 trajectories of Wet Chicken and of Gridworld, 25 states each. Large: a random model with 2
actions and 5 seen successors a pair: 10⁴ states have 10⁵ transitions in the counts. Rehearsal:
SPIBB and a posterior certificate from 99 draws in that many worlds of Gridworld at 5 data sizes,
after as many at one size to calibrate, on all cores; CPU seconds are those of all cores together.
Robust: certificates of 25 data sets of Gridworld, 1,000 trajectories each, made one set at a time
by the loop in Python, one at a time by the compiled loop, and in one batch.
"""

import argparse
import os
import time
from collections.abc import Callable

import numpy as np

from surestep import Counts, Pairs, Policy, Problem, certify
from surestep.algorithms import SPIBB
from surestep.certificates import Certifier, Posterior, Robust, certify_batch
from surestep.environments import make
from surestep.model.counts import LoggedRewards
from surestep.parallel import available_cores
from surestep.planning import robust_batch
from surestep.rehearsal import default_family, rehearse

# The arguments of the quickest run.
SMALLEST = ("--large", "50", "--robust", "1", "--rehearsal", "1")
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


def report_robust(data_sets: int, repeats: int = 4) -> None:
    """Prints how many robust certificates a second each way makes, and how they compare."""
    benchmark = make("gridworld")
    problems = [
        benchmark.problem(benchmark.sample(1000, np.random.default_rng(i)))
        for i in range(data_sets)
    ]
    policies = [SPIBB(n_wedge=27).improve(problem).policy for problem in problems]
    rewards = benchmark.mdp.reward
    for kind in ("interval", "l1", "two-successor"):
        certifier = Robust(
            set=kind, reward_low=float(rewards.min()), reward_high=float(rewards.max())
        )

        def singly(certifier: Robust = certifier) -> None:
            for problem, policy in zip(problems, policies, strict=True):
                certify(problem, policy, certifier)

        def together(certifier: Robust = certifier) -> None:
            certify_batch(problems, policies, certifier)

        small = robust_batch.SMALL
        robust_batch.SMALL = 0  # nothing is small: all sets are left to the loop in Python
        before = data_sets / quickest(singly, repeats)
        robust_batch.SMALL = small
        single, batch = (data_sets / quickest(way, repeats) for way in (singly, together))
        print(
            f"robust     gridworld, {kind:13} certificates a second: {before:5.0f} in Python, "
            f"{single:5.0f} compiled ({single / before:.1f} times), "
            f"{batch:5.0f} in a batch of {data_sets} ({batch / before:.1f} times)"
        )


def quickest(action: Callable[[], None], repeats: int) -> float:
    """The seconds of the quickest call; the first compiles, or loads, the kernels."""
    seconds = []
    for _ in range(1 + repeats):
        start = time.perf_counter()
        action()
        seconds.append(time.perf_counter() - start)
    return min(seconds[1:])


def report_rehearsal(worlds: int) -> None:
    """Prints the time of a rehearsal, start of the workers included."""
    _, problem, _ = small("gridworld", 27)
    kinds = default_family(problem, Posterior())
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    found = rehearse(
        problem,
        SPIBB(n_wedge=27),
        Posterior(),
        rng=np.random.default_rng(0),
        worlds=max(9, round(worlds / len(kinds))),  # fewer do not calibrate 1 − δ = 90 %
        workers=available_cores(),
    )
    seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - cpu
    print(
        f"rehearsal  gridworld, {found.gain.shape[0]} worlds, {len(found.sizes)} sizes "
        f"{seconds:8.1f} s, {cpu:.1f} s of CPU on {available_cores()} cores   "
        f"violated {found.summary().violated.share:.3f}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, default=10_000, help="states of the large model")
    parser.add_argument("--robust", type=int, default=25, help="data sets of robust certificates")
    parser.add_argument("--rehearsal", type=int, default=1_000, help="worlds of a rehearsal")
    given = parser.parse_args()
    for case in (small("wet-chicken", 10), small("gridworld", 27), large(given.large)):
        report(Posterior(), *case)
    report_robust(given.robust)
    report_rehearsal(given.rehearsal)


if __name__ == "__main__":
    main()

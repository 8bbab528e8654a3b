"""How much is proved where what is done now is only estimated, and how often that is wrong.

    python benchmarks/practice.py [--logs 20] [--share 0.3] [--worlds gridworld-300]

Nobody says which policy made a log: it is estimated from the first part, which also chooses the new
policy. The truth is the gain over the policy that really made the log, at δ = 0.1.

rollouts    the stitched certificate compares with rollouts of the estimate alone
returns     it may also compare with what episodes of the other part return

Printed are the mean of L where it is above 0, as a share of the mean gain of the best policy, in
how many logs L is above the truth, in how many it compared with returns, in how many the interval
of the best guess misses the truth, and in how many the posterior's claim is above it.
"""

import argparse
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from power import FAMILIES, Family

from surestep import Problem, certify, estimate_behavior
from surestep.algorithms.contract import Limits
from surestep.certificates import training_for
from surestep.certificates.episodes import held_out_part
from surestep.certificates.registry import Asked
from surestep.description import DEFAULTS
from surestep.environments import Benchmark
from surestep.model.known import Known, Split
from surestep.pipeline.terms import Terms, usual_train_share
from surestep.results.advantage_intervals import gain_interval

SMALLEST = ("--logs", "1", "--worlds", "gridworld-300")
DELTA = 0.1
WAYS = {"rollouts": "stitched:practice=0", "returns": "stitched"}


class Outcome(NamedTuple):
    """What is said of a policy, and what is true."""

    lower: float
    gain: float
    best: float
    by_returns: bool
    missed: bool
    believed: float


def outcome(benchmark: Benchmark, problem: Problem, kind: str, share: float) -> Outcome:
    """Improves and certifies as `improve` does where nobody gave the policy that made the log."""
    told = Known(
        delta=DELTA, seed=1, split=Split(share, "adaptive"), returns=benchmark.value_bounds
    )
    certifiers = [Asked.of(each).make_with(told) for each in (kind, "posterior")]
    training = training_for(problem, certifiers[0])
    behavior = estimate_behavior(training.counts)
    problem, training = (part.with_behavior(behavior) for part in (problem, training))
    limits = Limits(least_visits=DEFAULTS["least_visits"])
    terms = Terms.of(discount=benchmark.discount)
    method = terms.algorithm_for(problem, told, certifiers, limits)
    policy = method.improve(training).policy
    proved, believed = (certify(problem, policy, each) for each in certifiers)
    both = np.stack([policy.probability, benchmark.behavior.probability])
    ours, theirs = benchmark.truth.worth(both)
    judging = held_out_part(problem, share, None)
    _, low, high = gain_interval(judging, policy, DELTA, training.counts)
    return Outcome(
        float(proved.lower or 0.0),
        float(ours - theirs),
        float(benchmark.optimal_performance() - theirs),
        "practice_upper" in proved.figures,
        not low <= ours - theirs <= high,
        float(believed.lower or 0.0),
    )


def print_outcomes(families: Iterable[Family], logs: int, share: float | None) -> None:
    """Prints what comes of logs of each family, both ways."""
    print(
        f"{'world':18} {'way':9} {'L+':>5} {'wrong':>6} {'returns':>8} {'missed':>7} {'belief':>7}"
    )
    for family in families:
        part = share or usual_train_share(family.episodes)
        for way, kind in WAYS.items():
            found = []
            for n in range(logs):
                benchmark = family.benchmark(n)
                log = benchmark.sample(family.episodes, np.random.default_rng(5_000 + n))
                found.append(outcome(benchmark, benchmark.problem(log), kind, part))
            lower, gain, best, by_returns, missed, believed = np.array(found).T
            print(
                f"{family.title:18} {way:9} {np.maximum(lower, 0).sum() / best.sum():5.0%} "
                f"{(lower > gain + 1e-12).sum():6.0f} {by_returns.sum():8.0f} "
                f"{missed.sum():7.0f} {(believed > gain + 1e-12).sum():7.0f}",
                flush=True,
            )


def main() -> None:
    """Reads the arguments and prints the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=20)
    parser.add_argument("--share", type=float, help="that chooses; by default that of improve")
    names = [family.title for family in FAMILIES]
    parser.add_argument("--worlds", nargs="*", choices=names, default=names[:4])
    given = parser.parse_args()
    families = [family for family in FAMILIES if family.title in given.worlds]
    print_outcomes(families, given.logs, given.share)


if __name__ == "__main__":
    main()

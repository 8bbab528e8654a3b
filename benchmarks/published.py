"""DUIPI and pessimistic MBIE beside the code that Scholl et al. (2022) published, on Random MDPs.

    name=Safe-Policy-Improvement-Approaches-on-Discrete-Markov-Decision-Processes
    git clone https://github.com/Philipp238/$name .peers/scholl
    python benchmarks/published.py .peers/scholl

The published code is told the reward of every transition, also of those never seen, and that the
goal is a state like others, which nobody ever left. Ours learns rewards from the log, and knows
that the goal is an end. A line for each that is changed counts the logs in which the policies
differ in a state that was visited: where an action has another chance (by 0.001), or, of MBIE,
where the published values of the two actions are apart by more than 1e-9, at which that code stops.
Every policy is evaluated exactly in the true model. Without a folder, our side alone is shown.
"""

import argparse
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from surestep import Counts, Policy
from surestep.algorithms import make_algorithm
from surestep.environments import Benchmark, make
from surestep.model import Problem

SMALLEST = ("--mdps", "1", "--episodes", "20")
DELTA, XI = 0.1, 0.5


class Case(NamedTuple):
    """One log of one Random MDP, as both sides take it."""

    benchmark: Benchmark
    times: np.ndarray  # [S, A, S]
    prize: np.ndarray  # [S, S]: the reward of each transition
    goal: np.ndarray  # [S]

    @classmethod
    def of(cls, seed: int, episodes: int) -> "Case":
        """Returns the log of a seed: 1 is the first Random MDP of the published code."""
        benchmark = make("random-mdp", seed=seed, ratio=0.5)
        log = benchmark.sample(episodes, np.random.default_rng((seed, episodes)))
        size, actions = benchmark.num_states, benchmark.num_actions
        times = np.zeros((size, actions, size), np.int64)
        np.add.at(times, (log.state, log.action, log.next_state), 1)
        goal = benchmark.mdp.dense().P.sum(axis=(1, 2)) == 0
        return cls(benchmark, times, np.tile(goal.astype(float), (size, 1)), goal)

    def problem(self, known: bool) -> Problem:
        """Returns our problem; the rewards of all transitions are known, or those of the log."""
        rewards = np.broadcast_to(self.prize[:, None], self.times.shape)
        told = {"rewards": rewards} if known else {"reward_sums": self.times * rewards}
        counts = Counts.from_dense(self.times, terminal=self.goal, **told)
        behavior = Policy.from_dense(counts.pairs, self.benchmark.behavior.dense())
        return Problem(
            counts=counts,
            behavior=behavior,
            discount=self.benchmark.discount,
            value_bounds=self.benchmark.value_bounds,
        )

    def worth(self, policy: np.ndarray) -> float:
        """Returns ρ of a policy [S, A] in the true model."""
        probability = Policy.from_dense(self.benchmark.mdp, policy).probability
        return float(self.benchmark.truth.worth(probability[None])[0])


class Theirs(NamedTuple):
    """The policy of the published code [S, A], and its values if they decide what differs."""

    policy: np.ndarray
    q: np.ndarray | None = None

    def differs(self, ours: np.ndarray, visited: np.ndarray) -> bool:
        """Tells whether our policy [S, A] is another one in a visited state."""
        if self.q is None:
            return bool((np.abs(self.policy - ours)[visited] > 1e-3).any())
        lost = self.q.max(axis=1) - (self.q * ours).sum(axis=1)
        return bool((lost[visited] > 1e-9).any())


def published(case: Case, name: str, goal_ends: bool, **settings: object) -> Theirs:
    """Fits by an algorithm of the published code; the goal may have a row without variance."""
    from batch_rl_algorithms.duipi import DUIPI
    from batch_rl_algorithms.mbie import MBIE

    benchmark = case.benchmark
    size, actions = benchmark.num_states, benchmark.num_actions
    counts = {
        "count_state_action": case.times.sum(axis=2),
        "count_state_action_state": case.times,
    }
    terms = (benchmark.behavior.dense(), benchmark.discount, size, actions, None, case.prize, True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it divides by zero where a pair was never visited
        if name == "pessimistic-mbie":
            learner = MBIE(*terms, delta=DELTA, speed_up_dict=counts)
        else:
            bayesian = settings["estimator"] == "bayesian"
            learner = DUIPI(*terms, bayesian=bayesian, xi=XI, speed_up_dict=counts)
            if goal_ends:
                learner.transition_model[case.goal] = learner.variance_P[case.goal] = 0.0
        learner.fit()
    return Theirs(learner.pi, learner.q if name == "pessimistic-mbie" else None)


class Line(NamedTuple):
    """A method, and what is changed: our rewards are known, their goal is an end."""

    label: str
    name: str
    settings: dict[str, object]
    known: bool = False
    goal_ends: bool = False


def lines() -> Iterator[Line]:
    """Yields the lines of the table."""
    mbie = Line("`pessimistic-mbie`", "pessimistic-mbie", {"delta": DELTA})
    yield mbie
    yield mbie._replace(label=f"{mbie.label}, rewards known", known=True)
    for estimator in ("bayesian", "frequentist"):
        duipi = Line(f"`duipi`, {estimator}", "duipi", {"xi": XI, "estimator": estimator})
        known = duipi._replace(label=f"{duipi.label}, rewards known", known=True)
        yield from (duipi, known)
        yield known._replace(label=f"{known.label}, their goal an end", goal_ends=True)


def row(line: Line, cases: list[Case], beside: Callable[..., Theirs] | None) -> str:
    """Returns a line of the table, in Markdown."""
    learner = make_algorithm(line.name, **line.settings)
    ours = [learner.improve(case.problem(line.known)).policy.dense() for case in cases]
    mean = np.mean([case.worth(policy) for case, policy in zip(cases, ours, strict=True)])
    if beside is None:
        return f"| {line.label} | – | – | {mean:.3f} |"
    theirs = [beside(case, line.name, line.goal_ends, **line.settings) for case in cases]
    differ = sum(
        other.differs(mine, case.times.sum(axis=(1, 2)) > 0)
        for case, mine, other in zip(cases, ours, theirs, strict=True)
    )
    there = np.mean([case.worth(other.policy) for case, other in zip(cases, theirs, strict=True)])
    return f"| {line.label} | {differ} of {len(cases)} | {there:.3f} | {mean:.3f} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?", help="a clone of the published code")
    parser.add_argument("--mdps", type=int, default=5)
    parser.add_argument("--episodes", type=int, nargs="+", default=[200, 2000])
    given = parser.parse_args()
    if given.folder is not None:
        sys.path.insert(0, str(given.folder))
    for episodes in given.episodes:
        cases = [Case.of(seed, episodes) for seed in range(1, given.mdps + 1)]
        print(f"\n{given.mdps} Random MDPs, {episodes:,} trajectories\n")
        print("| | policies differ in | mean ρ, published code | ours |")
        print("| --- | ---: | ---: | ---: |")
        for line in lines():
            print(row(line, cases, published if given.folder else None), flush=True)


if __name__ == "__main__":
    main()

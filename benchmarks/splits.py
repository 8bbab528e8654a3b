"""What it costs to keep choice and claim apart: ways to use a log for both, held against the truth.

    python benchmarks/splits.py [--data-sets 40] [--worlds alike bandit] [--ways halves all]

In every data set SPIBB chooses, with the N∧ that the part which chooses expects the most of, and a
stitched certificate claims, at δ = 0.1 in all:

first 0.3   the first three tenths of the log choose, the rest judges
exchanged   two halves, each of which chooses a policy that the other one judges at δ/2; the policy
            with the larger claim is taken
mixed       both policies of the two halves: a coin before each episode says which of them is
            followed through it. That gains the mean of both gains, and the mean of both claims at
            δ/2 is a claim about it
at δ each   the same at δ each: no claim, but about what one bet on both halves could come to
same        all of the log chooses, and all of it judges
corrected   what `same` claims, less the most that it claims too much in nine worlds made from the
            log in which all actions are alike: one more would exceed that with chance δ
believed    the same as `corrected` with a posterior in place of the stitched certificate

Two halves that exchange roles need a logger who does not learn: a later half that chooses knows
what the earlier one led to. Printed are the mean of what is claimed, 0 where that is a loss; the
mean gain that the policy really has; how often a gain is claimed; and how often more than there is,
with a mark where that refutes a promise of δ, by an exact test that errs in one of 1,000 cells.
"""

import argparse
import itertools
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.stats import binom

from surestep import FiniteMDP, Policy, Problem, certify
from surestep.algorithms import SPIBB
from surestep.certificates import Certifier, Posterior, Stitched, training_for
from surestep.certificates.stacks import stacks_of
from surestep.certificates.stitched import Folds, judging_of, lower_limits
from surestep.choosing_n_wedge import AutoNWedge
from surestep.environments import Benchmark, make
from surestep.errors import CertificateRefused
from surestep.model import DecisionLog
from surestep.parallel import available_cores, map_as_done
from surestep.rehearsal import ActionsAlike

SMALLEST = ("--data-sets", "1", "--worlds", "bandit", "--workers", "1")
DELTA, FALSE_ALARMS = 0.1, 0.001
GRID = (5, 20, 100, 10**9)  # candidates for N∧; the last one leaves π_b as it is
ALIKE = 9  # worlds in which all actions are alike: one more exceeds all of them with chance δ
WARDS = 60
DRAWS = 199  # of a posterior


class Family(NamedTuple):
    """Worlds of a kind, and how many episodes are seen of each."""

    name: str
    settings: dict[str, object]
    episodes: int
    seeds: int = 8  # different worlds; 0: there is one

    def benchmark(self, number: int) -> Benchmark:
        """Returns the world of that data set."""
        varied = {"seed": 1 + number % self.seeds} if self.seeds else {}
        if self.name == "sure-or-rare":
            return sure_or_rare()
        return make(self.name, **self.settings, **varied)

    def __str__(self) -> str:
        """Says what the worlds are."""
        told = "".join(f", {name} {value}" for name, value in self.settings.items())
        return f"{self.name}{told}, {self.episodes:,} episodes"


FAMILIES = (
    Family("gridworld", {}, 300, 0),
    Family("gridworld", {}, 1_000, 0),
    Family("random-mdp", {}, 300),
    Family("wet-chicken", {}, 1_000, 0),
    Family("nearly-alike", {"effect": 1.0}, 1_000),
    Family("nearly-alike", {"effect": 0.2}, 1_000),
    Family("nearly-alike", {"effect": 0.05}, 300),
    Family("alike", {}, 300),
    Family("noisy", {"law": "skewed"}, 300),
    Family("noisy", {"law": "heavy-tailed"}, 300),
    Family("bandit", {"arms": 100}, 1_000),
    Family("adaptive", {}, 300),
    Family("adaptive/bandit", {}, 1_000),
    Family("sure-or-rare", {}, 36_000, 0),
)


def sure_or_rare(arms: int = 10, rare: float = 0.1) -> Benchmark:
    """Builds a decision in 60 wards: π_b mostly sends to where one in two wins, rarely to an arm.

    Each of the arms wins with chance 0.45, so that nothing is gained by any.
    """
    hall, won, lost = range(WARDS, WARDS + 3)
    rows = np.zeros((WARDS + 3, arms + 1, WARDS + 3))
    rows[:WARDS, 0, hall] = 1.0
    rows[:WARDS, 1:, won], rows[:WARDS, 1:, lost] = 0.45, 0.55
    rows[hall, :, won] = rows[hall, :, lost] = 0.5
    prize, begin = np.zeros(WARDS + 3), np.zeros(WARDS + 3)
    prize[won], begin[:WARDS] = 1.0, 1 / WARDS
    mdp = FiniteMDP.from_dense(rows, np.broadcast_to(prize, rows.shape), 1.0, initial=begin)
    behavior = np.full((WARDS + 3, arms + 1), rare / arms)
    behavior[:, 0] = 1 - rare
    return Benchmark(
        name="sure-or-rare",
        mdp=mdp,
        behavior=Policy.from_dense(mdp, behavior),
        horizon=2,
        rewards="observed",
        value_bounds=(0.0, 1.0),
    )


class Claim(NamedTuple):
    """What is claimed, and what the policy really gains."""

    lower: float
    gain: float


class DataSet(NamedTuple):
    """A log of a benchmark, and the number that it has among its like."""

    benchmark: Benchmark
    log: DecisionLog
    number: int

    @property
    def problem(self) -> Problem:
        """Returns the problem that the log poses."""
        return self.benchmark.problem(self.log)

    def judge(self, **settings: float) -> Stitched:
        """Returns the stitched certificate with the bounds of returns that are known."""
        low, high = self.benchmark.return_bounds or self.benchmark.value_bounds
        return Stitched(seed=self.number, return_low=low, return_high=high, **settings)

    def gain(self, policy: Policy) -> float:
        """Returns what a policy really gains."""
        both = np.stack([policy.probability, self.benchmark.behavior.probability])
        ours, theirs = self.benchmark.truth.worth(both)
        return float(ours - theirs)

    @property
    def reward_range(self) -> tuple[float, float]:
        """Returns the least and the greatest reward of the log."""
        return float(self.log.reward.min()), float(self.log.reward.max())

    def choose(self, judge: Stitched) -> Policy:
        """Returns the policy of the part that a judge leaves to the choice."""
        chooser = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=judge, grid=GRID)
        return chooser.improve(training_for(self.problem, judge)).policy

    def claimed(self, judge: Stitched, policy: Policy) -> Claim:
        """Returns what is claimed of a policy, and what it gains."""
        return Claim(float(certify(self.problem, policy, judge).lower or 0.0), self.gain(policy))


Claims = dict[str, Claim]  # by what the way to make them is called


def by_first(data: DataSet) -> Claims:
    """Returns the claims where the first part of the log chooses, and the rest judges."""
    found = {}
    for share in (0.2, 0.3, 0.5):
        judge = data.judge(delta=DELTA, train_share=share)
        found[f"first {share:g}"] = data.claimed(judge, data.choose(judge))
    return found


def by_halves(data: DataSet) -> Claims:
    """Returns the claims where either half chooses a policy that the other half judges."""
    half, episodes = data.log.num_episodes // 2, np.arange(data.log.num_episodes)
    turned = data._replace(log=data.log.episodes(np.roll(episodes, -half)))
    judge = data.judge(delta=DELTA / 2, train_share=0.5)
    claims, bolder = [], []
    for part in (data, turned):
        policy = part.choose(judge)
        claims.append(part.claimed(judge, policy))
        at_all = certify(part.problem, policy, replace(judge, delta=DELTA))
        bolder.append(claims[-1]._replace(lower=float(at_all.lower or 0.0)))
    return {
        "exchanged": max(claims),
        "mixed": Claim(*np.mean(claims, axis=0).tolist()),
        "at δ each": Claim(*np.mean(bolder, axis=0).tolist()),
    }


def by_all(data: DataSet) -> Claims:
    """Returns the claims where all of the log chooses, and all of it judges."""
    own, policy = stitched_by_all(data)
    gain = data.gain(policy)
    return {
        "same": Claim(own, gain),
        "corrected": Claim(less_luck(own, stitched_by_all, data), gain),
    }


def by_belief(data: DataSet) -> Claims:
    """Returns the same with a posterior."""
    own, policy = posterior_by_all(data)
    return {"believed": Claim(less_luck(own, posterior_by_all, data), data.gain(policy))}


def stitched_by_all(data: DataSet) -> tuple[float, Policy]:
    """Returns what all of the log claims of the policy that all of it chose."""
    problem, judge = data.problem, data.judge(delta=DELTA, train_share=0.5)
    policy = chosen_by(problem, judge)
    if np.array_equal(policy.probability, problem.behavior.probability):
        return 0.0, policy
    stacks = stacks_of(data.log)
    judged = judging_of(judge, problem, policy)
    judged = judged._replace(folds=Folds(data.log, data.log, 1.0, (stacks, stacks)))
    (limit,) = lower_limits([judged])
    if isinstance(limit, CertificateRefused):
        raise limit
    return limit[0], policy


def posterior_by_all(data: DataSet) -> tuple[float, Policy]:
    """Returns the same by a posterior."""
    problem = data.problem
    judge = Posterior(delta=DELTA, draws=DRAWS, seed=data.number)
    if not problem.counts.rewards.known:
        low, high = data.reward_range
        judge = replace(judge, rewards="bounded", reward_low=min(low, 0.0), reward_high=high)
    policy = chosen_by(problem, judge)
    return float(certify(problem, policy, judge).lower or 0.0), policy


def chosen_by(problem: Problem, judge: Certifier) -> Policy:
    """Returns the policy with the N∧ that a judge expects the most of."""
    choosing = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=judge, grid=GRID)
    return choosing.improve(problem).policy


def less_luck(
    lower: float, by_all: Callable[[DataSet], tuple[float, Policy]], data: DataSet
) -> float:
    """Returns a claim less what luck alone claims too much, where anything was claimed."""
    if lower <= 0:
        return lower
    problem, rng = data.problem, np.random.default_rng([data.number, ALIKE])
    noise = None if problem.counts.rewards.known else data.reward_range
    world = ActionsAlike(noise).world(problem, rng)
    benchmark = replace(data.benchmark, mdp=world.truth, simulator=None)
    luck = 0.0
    for number in range(ALIKE):
        if luck >= lower:
            break  # nothing is left to claim
        log = world.record(data.log.num_episodes, data.benchmark.horizon, rng).log
        alike = DataSet(benchmark, log, number)
        claimed, policy = by_all(alike)
        luck = max(luck, claimed - alike.gain(policy))  # known rewards may differ there, too
    return lower - luck


WAYS = {"first": by_first, "halves": by_halves, "all": by_all, "belief": by_belief}


class Task(NamedTuple):
    """One data set of a family, and the ways to look at it."""

    family: Family
    number: int
    ways: tuple[str, ...]


def claims_of(task: Task) -> Claims:
    """Returns what each way claims of a data set."""
    benchmark = task.family.benchmark(task.number)
    log = benchmark.sample(task.family.episodes, np.random.default_rng(1_000 + task.number))
    data = DataSet(benchmark, log, task.number)
    return {name: claim for way in task.ways for name, claim in WAYS[way](data).items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data-sets", type=int, default=40)
    parser.add_argument("--worlds", nargs="+", choices=sorted({each.name for each in FAMILIES}))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    parser.add_argument("--workers", type=int, default=available_cores())
    given = parser.parse_args()
    families = [each for each in FAMILIES if not given.worlds or each.name in given.worlds]
    tasks = [
        Task(family, number, tuple(given.ways))
        for family in families
        for number in range(given.data_sets)
    ]
    found = map_as_done(claims_of, tasks, workers=given.workers)
    allowed = binom.ppf(1 - FALSE_ALARMS, given.data_sets, DELTA)
    for family in families:
        rows = [row for _, row in itertools.islice(found, given.data_sets)]
        print(f"{family}, {given.data_sets} data sets")
        for way in rows[0]:
            lower, gain = np.array([row[way] for row in rows]).T
            wrong = int((lower > gain + 1e-9).sum())
            print(
                f"  {way:10} claimed {np.maximum(lower, 0).mean():7.4f} of {gain.mean():7.4f}   "
                f"a gain in {(lower > 0).mean():4.0%}   wrong in {wrong}"
                f"{'  refuted' if wrong > allowed else ''}",
                flush=True,
            )


if __name__ == "__main__":
    main()

"""How much of what could be gained the default proves, beside what it proved formerly.

    python benchmarks/power.py [--logs 10] [--small-logs 20] [--worlds gridworld random-mdp]

Proofs. Each log is split, its first part chooses a policy, and the stitched certificate judges it
by the rest, with the bounds of returns that the owner of such a log would declare, at δ = 0.1.

former      SPIBB with the N∧ that the first three tenths expect the most of
default     what `improve` does: provable policies, and one action in every state that changes, are
            among the candidates, and the share that chooses follows from the number of episodes

Printed are means over logs: L where it is above 0, and the true gain of the policy, both as shares
of the gain of the best policy; and how many of the logs are proved better. `one` says how many of
the policies take one action in every state that they change.

Small logs. 100 patients of a chronic disease with a clear benefit, and 100 of one where treatments
do nothing. Believed is what a posterior says by the rest of the log, unless it says as much in
worlds made from the log in which all actions are alike. The gain is that of policies which are
proved or believed better. Where treatments do nothing, every belief is wrong.
"""

import argparse
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from surestep import FiniteMDP, Policy, Problem, certify
from surestep.algorithms.contract import Limits
from surestep.certificates import training_for
from surestep.certificates.registry import Asked
from surestep.description import DEFAULTS
from surestep.environments import Benchmark, make
from surestep.model.known import Known, Split
from surestep.pipeline.terms import Terms, usual_train_share
from surestep.rehearsal import rehearse
from surestep.results.findings import rung_of

SMALLEST = ("--logs", "1", "--small-logs", "1", "--worlds", "gridworld-300")
DELTA = 0.1
FORMER, NOW = "former", "default"
PATIENTS = 100
DISEASE = "chronic disease"


class Family(NamedTuple):
    """Worlds of a kind, the size of their logs, and the share of the gain that is to be proved."""

    name: str
    episodes: int
    aim: float
    varied: bool = False  # another world for each log

    def benchmark(self, number: int) -> Benchmark:
        """Returns the world of a log."""
        return make(self.name, **({"seed": 1_000 + number} if self.varied else {}))

    @property
    def title(self) -> str:
        """Returns what the family is called."""
        return f"{self.name}-{self.episodes}"


FAMILIES = (
    Family("gridworld", 300, 0.40),
    Family("gridworld", 1_000, 0.75),
    Family("random-mdp", 300, 0.15, varied=True),
    Family("random-mdp", 1_000, 0.70, varied=True),
    Family("wet-chicken", 5_000, 0.15),
)


def chronic_disease(effect: float = 1.0) -> Benchmark:
    """Builds seven degrees of a disease and death, with three treatments.

    Every month of two years a patient is watched, treated or treated intensively. The more is done,
    the more often the disease gets better and the less often worse, but treatment has a burden.
    Current practice does not look at the degree. With no effect, all treatments do what practice
    does on average, burden included.
    """
    degrees, treatments = 7, 3
    death, practice = degrees, np.array([0.40, 0.40, 0.20])
    better, worse = np.array([0.10, 0.30, 0.60]), np.array([0.45, 0.25, 0.10])
    burden = np.array([0.0, 0.05, 0.10])
    rows = np.zeros((degrees + 1, treatments, degrees + 1))
    earned = np.zeros((degrees + 1, treatments))
    for degree in range(degrees):
        dies = 0.004 + 0.05 * (degree / (degrees - 1)) ** 2
        for treatment in range(treatments):
            row = np.zeros(degrees + 1)
            row[max(degree - 1, 0)] += better[treatment]
            row[min(degree + 1, degrees - 1)] += worse[treatment]
            row[degree] += 1 - better[treatment] - worse[treatment]
            rows[degree, treatment] = (1 - dies) * row
            rows[degree, treatment, death] = dies
            earned[degree, treatment] = 1 - degree / degrees - burden[treatment]
    for table in (rows, earned):
        usual = np.tensordot(practice, table, (0, 1))[:, np.newaxis]
        table[:] = effect * table + (1 - effect) * usual
    begin = np.array([0.0, 0.1, 0.3, 0.3, 0.2, 0.1, 0.0, 0.0])
    mdp = FiniteMDP.from_dense(rows, earned, 0.9, initial=begin)
    return Benchmark(
        name=DISEASE,
        mdp=mdp,
        behavior=Policy.from_dense(mdp, np.tile(practice, (degrees + 1, 1))),
        horizon=24,
        rewards="observed",
        value_bounds=(0.0, 10.0),
    )


class Outcome(NamedTuple):
    """The result of a log, as shares of the gain of the best policy."""

    lower: float
    gain: float
    rung: str
    one_action: bool


def outcome(
    benchmark: Benchmark, problem: Problem, way: str, share: float, *, believe: bool
) -> Outcome:
    """Improves and certifies, as `improve` does by default or did formerly."""
    told = Known(
        delta=DELTA, seed=1, split=Split(share, "adaptive"), returns=benchmark.value_bounds
    )
    certifiers = [Asked.of(kind).make_with(told) for kind in ("stitched", "posterior")]
    terms = Terms.of(discount=benchmark.discount, algorithm="spibb" if way == FORMER else None)
    limits = Limits(least_visits=DEFAULTS["least_visits"])
    judge, belief = certifiers
    method = terms.algorithm_for(problem, told, certifiers, limits)
    policy = method.improve(training_for(problem, judge)).policy
    claims = [certify(problem, policy, judge)]
    changed = policy.probability != benchmark.behavior.probability
    rehearsal = None
    if believe and changed.any() and not (claims[0].lower or 0) > 0:
        claims.append(certify(problem, policy, belief))
        if (claims[1].lower or 0) > 0:
            rng = np.random.default_rng(1)
            rehearsal = rehearse(
                problem, method, judge, belief=belief, rng=rng, worlds=0, sizes=[1.0]
            )
    both = np.stack([policy.probability, benchmark.behavior.probability])
    ours, theirs = benchmark.truth.worth(both)
    best = benchmark.optimal_performance() - theirs
    states = np.unique(policy.pairs.state[changed])
    inside = np.isin(policy.pairs.state, states)
    return Outcome(
        float(claims[0].lower or 0.0) / best if best > 0 else 0.0,
        float(ours - theirs) / best if best > 1e-9 else 0.0,
        rung_of(claims, changed=bool(changed.any()), rehearsal=rehearsal),
        bool(np.isin(policy.probability[inside], (0.0, 1.0)).all()),
    )


def outcomes(
    worlds: Iterable[tuple[Benchmark, int, int]], way: str, *, believe: bool = False
) -> list[Outcome]:
    """Returns the outcomes of logs: a world, a number of episodes and a seed each."""
    found = []
    for benchmark, episodes, seed in worlds:
        problem = benchmark.problem(benchmark.sample(episodes, np.random.default_rng(seed)))
        share = 0.3 if way == FORMER else usual_train_share(episodes)
        found.append(outcome(benchmark, problem, way, share, believe=believe))
    return found


def print_proofs(families: Iterable[Family], logs: int) -> None:
    """Prints what is proved in logs of each family."""
    print(f"{'world':18} {'way':8} {'L+':>6} {'aim':>5} {'gain':>6} {'proved':>8} {'one':>8}")
    for family in families:
        worlds = [(family.benchmark(n), family.episodes, 5_000 + n) for n in range(logs)]
        for way in (FORMER, NOW):
            found = outcomes(worlds, way)
            lower, gain = (
                np.mean([max(each.lower, 0.0) for each in found]),
                np.mean([each.gain for each in found]),
            )
            proved, one = (
                f"{sum(which)} of {logs}"
                for which in ([e.lower > 0 for e in found], [e.one_action for e in found])
            )
            aim = f"{family.aim:.0%}" if way == NOW else ""
            print(
                f"{family.title:18} {way:8} {lower:6.0%} {aim:>5} {gain:6.0%} {proved:>8} {one:>8}",
                flush=True,
            )


def print_small(logs: int) -> None:
    """Prints what small logs of a chronic disease come to."""
    print(f"\n{DISEASE}, {PATIENTS} patients")
    print(
        f"{'treatments':18} {'way':8} {'gain':>6} {'proved':>9} {'believed':>9} {'unchanged':>10}"
    )
    for effect, title in ((1.0, "work"), (0.0, "do nothing")):
        world = chronic_disease(effect)
        for way in (FORMER, NOW):
            worlds = [(world, PATIENTS, 9_000 + n) for n in range(logs)]
            found = outcomes(worlds, way, believe=True)
            said = [each.rung for each in found]
            counts = [
                f"{said.count(rung)} of {logs}"
                for rung in ("proved better", "believed better", "nothing changed")
            ]
            shown = [e.gain for e in found if e.rung in ("proved better", "believed better")]
            gain = f"{sum(shown) / logs:.0%}" if effect else "-"
            print(f"{title:18} {way:8} {gain:>6} {counts[0]:>9} {counts[1]:>9} {counts[2]:>10}")


def main() -> None:
    """Reads the arguments and prints both tables."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--logs", type=int, default=10)
    parser.add_argument("--small-logs", type=int, default=20)
    names = [family.title for family in FAMILIES]
    parser.add_argument("--worlds", nargs="*", choices=names, default=names)
    given = parser.parse_args()
    if given.logs and given.worlds:
        print_proofs([family for family in FAMILIES if family.title in given.worlds], given.logs)
    if given.small_logs:
        print_small(given.small_logs)


if __name__ == "__main__":
    main()

"""How long certificates take, and how much stitched ones prove.

    python benchmarks/certificates.py [--large 10000] [--wide 716] [--robust 25]
                                      [--rehearsal 1000] [--sizes 5] [--stitched 40]
                                      [--benchmarks 4] [--episodes 10000] [--work 25 150 716]

Small: 50 trajectories of Wet Chicken and of Gridworld, 25 states each. Large: a random model with 2
actions and 5 seen successors a pair: 10⁴ states have 10⁵ transitions in the counts. Wide: that many
states, two of them ends, with 25 actions, and 7 stays of ten steps a state, γ = 0.99. Rehearsal:
SPIBB and a posterior certificate from 99 draws in that many worlds of Gridworld at 5 data sizes,
after as many at one size to calibrate, on all cores; CPU seconds are those of all cores together.
Robust: certificates of 25 data sets of Gridworld, 1,000 trajectories each, made one set at a time
by the loop in Python, one at a time by the compiled loop, and in one batch.

Work: for that many states, with 2, 5 and 25 actions, what the stress test of a default improvement
is said to take and what it takes, in seconds of one core: the worlds in which all actions are alike
at every size, and one world of each other kind where these take less than a minute.

Stitched: SPIBB with N∧ chosen by the training part, in that many data sets of benchmarks whose
truth is known: the mean L, the mean of the gain that the policy really has, how often L is above 0,
and how often above the gain; then what was lost: by rounds that were cut, or had luck or none, and
by the bet on them. Then the time of one certificate for 100 states and that many
episodes, and for 1,000 states and ten times as many.
"""

import argparse
import os
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from surestep import (
    Counts,
    FiniteMDP,
    Pairs,
    Policy,
    Problem,
    certify,
    estimate_behavior,
    performance,
    sample_log,
)
from surestep.algorithms import SPIBB
from surestep.certificates import Certifier, Posterior, Robust, Stitched, certify_many, training_for
from surestep.choosing_n_wedge import AutoNWedge
from surestep.environments import make
from surestep.model.counts import LoggedRewards
from surestep.parallel import available_cores
from surestep.planning import robust
from surestep.rehearsal import default_family, rehearse
from surestep.rehearsal.rehearse import SIZES

# The arguments of the quickest run.
SMALLEST = (
    "--large", "50", "--wide", "20", "--robust", "1", "--rehearsal", "1", "--sizes", "1",
    "--stitched", "1",
    "--benchmarks", "1", "--episodes", "50", "--draws", "20", "--work",
)  # fmt: skip
STITCHED = (
    ("gridworld", 300),
    ("gridworld", 1000),
    ("random-mdp", 1000),
    ("wet-chicken", 5000),
    ("wet-chicken", 10_000),
)
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


def wide(all_states: int) -> tuple[str, Problem, Policy]:
    """Counts of stays that end well or not, and SPIBB's policy for them; rewards are not known."""
    rng = np.random.default_rng(0)
    states, actions, stays = all_states - 2, 25, 7 * all_states
    steps = 10 * stays
    liking = rng.dirichlet(np.full(actions, 0.15), states).cumsum(axis=1)
    state = rng.integers(states, size=steps)
    action = np.minimum((liking[state] < rng.random((steps, 1))).sum(axis=1), actions - 1)
    nearby = rng.integers(states, size=(states, 30))
    following = nearby[state, (30 * rng.random(steps) ** 2).astype(int)]
    end = np.where(rng.random(steps) < 0.8, states, states + 1)
    following = np.where(rng.random(steps) < 0.1, end, following)
    pairs = Pairs.full(all_states, actions)
    key = (state * actions + action) * (all_states) + following
    cells, times = np.unique(key, return_counts=True)
    pair, successor = np.divmod(cells, all_states)
    counts = Counts(
        pairs,
        np.searchsorted(pair, np.arange(pairs.num_pairs + 1)),
        successor,
        times,
        LoggedRewards(1.0 * times * (successor == states), "transition", False),
        np.bincount(state[::10], minlength=all_states),
        np.arange(all_states) >= states,
    )
    problem = Problem(
        counts=counts,
        behavior=estimate_behavior(counts),
        discount=0.99,
        value_bounds=(0.0, 1.0),
    )
    policy = SPIBB(n_wedge=5).improve(problem).policy
    return f"{stays:,} stays, {actions} actions", problem, policy


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
            certify_many(problems, policies, certifier)

        small = robust.SMALL
        robust.SMALL = 0  # nothing is small: all sets are left to the loop in Python
        before = data_sets / quickest(singly, repeats)
        robust.SMALL = small
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


def report_rehearsal(worlds: int, num_sizes: int, draws: int) -> None:
    """Prints the time of a rehearsal, start of the workers included."""
    _, problem, _ = small("gridworld", 27)
    belief, workers = Posterior(draws=draws), min(worlds, available_cores())
    kinds = default_family(problem, belief)[:worlds]
    start, cpu = time.perf_counter(), sum(os.times()[:4])
    found = rehearse(
        problem,
        SPIBB(n_wedge=27),
        belief,
        rng=np.random.default_rng(0),
        worlds=max(9, round(worlds / len(kinds))),  # fewer do not calibrate 1 − δ = 90 %
        sizes=sorted(sorted(SIZES, key=lambda size: abs(np.log(size)))[:num_sizes]),
        family=kinds,
        workers=workers,
    )
    seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - cpu
    print(
        f"rehearsal  gridworld, {found.gain.shape[0]} worlds, {len(found.sizes)} sizes "
        f"{seconds:8.1f} s, {cpu:.1f} s of CPU on {workers} cores   "
        f"violated {found.summary().violated.share:.3f}"
    )


def report_stitched(name: str, episodes: int, data_sets: int) -> None:
    """Prints how much of the true gain is proved, and how often there is any."""
    lower, gains = np.empty(data_sets), np.empty(data_sets)
    lost = []  # rounds, episodes that judge, and what cuts and luck, and the bet, cost
    start = time.perf_counter()
    for i in range(data_sets):
        benchmark = make(name, seed=1 + i % 8) if name == "random-mdp" else make(name)
        problem = benchmark.problem(benchmark.sample(episodes, np.random.default_rng(i)))
        judge = Stitched(logger="fixed", seed=i)
        chooser = AutoNWedge(algorithm=SPIBB(n_wedge=1), certifier=judge)
        policy = chooser.improve(training_for(problem, judge)).policy
        certificate = certify(problem, policy, judge)
        lower[i], figures = certificate.lower, certificate.figures
        gains[i] = performance(benchmark.mdp, policy) - benchmark.performance_of_behavior()
        if figures["changed_pairs"] and figures["estimate"] is not None:
            rounds, judging, estimate = (
                figures[name] for name in ("rounds", "episodes", "estimate")
            )
            lost.append((rounds, judging, gains[i] - estimate, estimate - lower[i]))
    print(
        f"stitched   {name}, {episodes:,} trajectories: L = {lower.mean():.4g} of a gain of "
        f"{gains.mean():.4g} ({lower.mean() / max(gains.mean(), 1e-12):.0%}), "
        f"above 0 in {(lower > 0).mean():.0%}, wrong in {(lower > gains + 1e-9).sum()} of "
        f"{data_sets} data sets; {(time.perf_counter() - start) / data_sets:.2f} s each"
    )
    rounds, judging, cuts, bets = np.mean(lost, axis=0) if lost else np.zeros(4)
    print(
        f"           {rounds:.0f} rounds of π_I from {judging:,.0f} episodes that judge; "
        f"cuts and luck cost {cuts:.3g}, the bet {bets:.3g}"
    )


def logged_problem(states: int, actions: int, episodes: int, discount: float) -> Problem:
    """The log of a random model with an end."""
    rng = np.random.default_rng(0)
    shape = (states * actions, SUCCESSORS)
    successor = rng.integers(0, states + 1, shape)
    successor[:, 0] = np.where(rng.random(len(successor)) < 0.5, states, successor[:, 0])
    probability = np.zeros((states + 1, actions, states + 1))
    chances = rng.dirichlet(np.ones(SUCCESSORS), len(successor)).reshape(states, actions, -1)
    pairs = np.indices((states, actions, SUCCESSORS))
    np.add.at(probability, (pairs[0], pairs[1], successor.reshape(chances.shape)), chances)
    reward = np.zeros_like(probability)
    reward[: states // 2, :, states] = 1.0
    mdp = FiniteMDP.from_dense(probability, reward, discount)
    behavior = Policy.uniform(mdp)
    log = sample_log(mdp, behavior, episodes, 50, rng)
    return Problem(
        counts=log.counts(), behavior=behavior, discount=discount, value_bounds=(0.0, 1.0), log=log
    )


def report_logged(states: int, episodes: int) -> None:
    """Prints the time of one stitched certificate of a random model with an end."""
    problem = logged_problem(states, ACTIONS, episodes, 0.95)
    judge = Stitched(logger="fixed")
    policy = SPIBB(n_wedge=20).improve(training_for(problem, judge)).policy
    report(judge, f"random, {episodes:,} episodes", problem, policy)


def report_work(states: int, actions: int) -> None:
    """Prints the seconds that the worlds of a stress test take."""
    problem = logged_problem(states, actions, 7 * states, 0.99)
    problem = replace(problem, behavior=estimate_behavior(problem.counts))
    proof, belief = Stitched(), Posterior(train_share=0.3, rewards="deterministic")
    auto = AutoNWedge(algorithm=SPIBB(n_wedge=9), certifier=proof, least=9, otherwise=belief)
    lines = [(0, "worlds in which all actions are alike")]
    lines += [(1, "these, and a world of each other kind")] if states < 500 else []
    for worlds, words in lines:
        for _ in range(2):  # the first compiles, or loads, the kernels
            start = time.process_time()
            rng = np.random.default_rng(0)
            rehearse(problem, auto, proof, belief=belief, rng=rng, worlds=worlds, sizes=(1.0,))
            taken = time.process_time() - start
        print(
            f"work       {problem.num_states:5,} states, {actions:2} actions: {words}: "
            f"{taken:.1f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--large", type=int, default=10_000, help="states of the large model")
    parser.add_argument("--wide", type=int, default=716, help="states of the wide model")
    parser.add_argument("--robust", type=int, default=25, help="data sets of robust certificates")
    parser.add_argument("--rehearsal", type=int, default=1_000, help="worlds of a rehearsal")
    parser.add_argument(
        "--sizes", type=int, default=5, help="of data in the rehearsal, the largest"
    )
    parser.add_argument("--benchmarks", type=int, help="of the stitched ones, the first so many")
    parser.add_argument("--stitched", type=int, default=40, help="data sets of stitched ones")
    parser.add_argument(
        "--work", type=int, nargs="*", default=[25, 150, 716], help="states of stress tests"
    )
    parser.add_argument("--draws", type=int, default=1000, help="models of posteriors")
    parser.add_argument("--episodes", type=int, default=10_000, help="episodes for 100 states")
    given = parser.parse_args()
    cases = small("wet-chicken", 10), small("gridworld", 27), wide(given.wide), large(given.large)
    for case in cases:
        report(Posterior(draws=given.draws), *case)
    report_robust(given.robust)
    report_rehearsal(given.rehearsal, given.sizes, given.draws)
    for states in given.work:
        report_work(states, 2 if states < 100 else 5 if states < 500 else 25)
    for name, episodes in STITCHED[: given.benchmarks]:
        report_stitched(name, episodes, given.stitched)
    report_logged(100, given.episodes)
    report_logged(1000, 10 * given.episodes)


if __name__ == "__main__":
    main()

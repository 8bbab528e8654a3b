"""Every algorithm at growing sizes: time, memory, and the ratio to code as research writes it.

    python benchmarks/algorithms.py [--sizes 25 400 10000 1000000]

Each measurement runs in a process of its own, after one call that compiles or loads the kernels, so
the peak memory is that of the problem and the algorithm. The plain
implementation builds the dense (SA × SA) matrix of state-action transitions and inverts it in every
iteration; it is run in the same process where that fits.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable

import numpy as np
from scipy.optimize import linprog

from surestep import Counts, Pairs, Policy, Problem
from surestep.algorithms import ALGORITHMS, SPIBB, BasicRL, improve_batch, make_algorithm
from surestep.algorithms.soft import HOEFFDING, errors_of
from surestep.model import CountsBatch, LoggedRewards, ProblemBatch
from surestep.sampling import sample_log

# The arguments of the quickest run.
SMALLEST = ("--sizes", "25", "--only", "basic-rl", "--data-sets", "10")
ACTIONS, SUCCESSORS, DISCOUNT = 4, 4, 0.95
SETTINGS = {
    "basic-rl": {},
    "spibb": {"n_wedge": 10},
    "lower-spibb": {"n_wedge": 10},
    "spibb-2s": {"spibb_n_wedge": 100},
    "spibb-beta": {"spibb_n_wedge": 100},
    "exact-soft-spibb": {"epsilon": 0.5},
    "approx-soft-spibb": {"epsilon": 0.5},
    "lower-soft-spibb": {"epsilon": 0.5},
    "advantage-soft-spibb": {"epsilon": 0.5},
    "one-step-exact-soft-spibb": {"epsilon": 0.5},
    "one-step-approx-soft-spibb": {"epsilon": 0.5},
    "ramdp": {"kappa": 0.05},
    "rmin": {"n_wedge": 10},
    "pessimistic-mbie": {},
    "duipi": {"xi": 1.0},
    "robust-mdp": {},
    "vi-lcb": {},
    "hcpi": {},
}
DENSE_PAIRS = 2_000  # beyond it a dense matrix per iteration takes minutes
NEEDS_LOG = {"hcpi"}


def random_problem(states: int, seed: int = 0, with_log: bool = False) -> Problem:
    """Counts as a log leaves them: half of the pairs rich, half scarce, successors anywhere."""
    rng = np.random.default_rng(seed)
    pairs = Pairs.full(states, ACTIONS)
    shape = (states * ACTIONS, SUCCESSORS)
    successor = np.sort(rng.integers(0, states - SUCCESSORS + 1, shape), axis=1)
    successor += np.arange(SUCCESSORS)
    times = rng.poisson(8, shape) * rng.integers(0, 2, (len(successor), 1))
    times += rng.random(shape) < 0.9
    counts = Counts(
        pairs,
        np.arange(len(successor) + 1) * SUCCESSORS,
        successor.ravel(),
        times.ravel(),
        LoggedRewards(rng.random(len(successor)), "pair", True),
        np.eye(1, states, dtype=np.int64)[0],
    )
    behavior = Policy.softmax(pairs, rng.normal(size=pairs.num_pairs))
    terms = {"behavior": behavior, "discount": DISCOUNT, "value_bounds": (0.0, 20.0)}
    problem = Problem(counts=counts, **terms)
    if not with_log:
        return problem
    log = sample_log(problem.estimate(), behavior, 20 * states, 50, rng)
    return Problem(counts=log.counts(), log=log, **terms)


# ---- as research code writes it ---------------------------------------------------------------

DenseStep = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def dense_policy_iteration(problem: Problem, step: DenseStep) -> np.ndarray:
    """Policy iteration with a dense (SA × SA) inverse per iteration."""
    dense = problem.estimate().dense()
    states, actions = problem.num_states, problem.num_actions
    transitions = dense.P.reshape(states * actions, states)
    reward = dense.R.reshape(states * actions) if dense.R.ndim == 2 else (dense.P * dense.R).sum(2)
    behavior = problem.behavior.dense()
    visits = problem.counts.visits.reshape(states, actions)
    error = errors_of(HOEFFDING, problem, 1.0).reshape(states, actions)
    policy, q, before = behavior.copy(), np.zeros((states, actions)), np.ones((states, actions))
    while np.linalg.norm(q - before) > 1e-9:
        before = q
        spread = np.zeros((states, states * actions))
        for s in range(states):
            spread[s, s * actions : (s + 1) * actions] = policy[s]
        inverse = np.linalg.inv(np.eye(states * actions) - DISCOUNT * transitions @ spread)
        q = (inverse @ reward.ravel()).reshape(states, actions)
        policy = step(q, behavior, visits, error)
    return policy


def dense_greedy(q: np.ndarray, _b: np.ndarray, _v: np.ndarray, _e: np.ndarray) -> np.ndarray:
    """One-hot argmax."""
    return np.eye(q.shape[1])[q.argmax(axis=1)]


def dense_spibb(q: np.ndarray, behavior: np.ndarray, visits: np.ndarray, _e: object) -> np.ndarray:
    """Π_b-SPIBB, state by state."""
    policy = np.where(visits > 10, 0.0, behavior)
    for s in range(len(q)):
        free = np.flatnonzero(visits[s] > 10)
        if free.size:
            policy[s, free[q[s, free].argmax()]] += 1 - policy[s].sum()
    return policy


def dense_lower(q: np.ndarray, behavior: np.ndarray, visits: np.ndarray, _e: object) -> np.ndarray:
    """Π_≤b-SPIBB, state by state."""
    policy = np.zeros_like(q)
    for s in range(len(q)):
        left = 1.0
        for a in np.argsort(-q[s], kind="stable"):
            if visits[s, a] > 10 or behavior[s, a] > left:
                policy[s, a] = left
                break
            policy[s, a] = behavior[s, a]
            left -= behavior[s, a]
    return policy


def dense_soft(q: np.ndarray, behavior: np.ndarray, _v: object, error: np.ndarray) -> np.ndarray:
    """Exact-Soft-SPIBB, a linear program a state."""
    actions = q.shape[1]
    eye, policy = np.eye(actions), behavior.copy()
    for s in range(len(q)):
        finite = np.isfinite(error[s])
        price = np.where(finite, error[s], 0.0)
        above = np.block([[eye, -eye], [-eye, -eye]])
        found = linprog(
            np.concatenate([-q[s], np.zeros(actions)]),
            A_ub=np.vstack([above, np.concatenate([np.zeros(actions), price])]),
            b_ub=np.concatenate([behavior[s], -behavior[s], [0.5]]),
            A_eq=np.vstack([np.repeat([1.0, 0.0], actions), np.hstack([eye, 0 * eye])[~finite]]),
            b_eq=np.concatenate([[1.0], behavior[s][~finite]]),
            bounds=(0, None),
        )
        policy[s] = np.maximum(found.x[:actions], 0)
    return policy


PLAIN: dict[str, DenseStep] = {
    "basic-rl": dense_greedy,
    "spibb": dense_spibb,
    "lower-spibb": dense_lower,
    "exact-soft-spibb": dense_soft,
}


# ---- measuring --------------------------------------------------------------------------------


def fastest(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls, of one where it takes long."""
    times: list[float] = []
    while len(times) < 10 and sum(times) < 1:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name: str, states: int, answer: "multiprocessing.connection.Connection") -> None:
    """Seconds (best of several), iterations, peak GB and the ratio to the plain code, if any."""
    algorithm = make_algorithm(name, **SETTINGS[name])
    with_log = name in NEEDS_LOG
    problem = random_problem(states, with_log=with_log)
    algorithm.improve(problem)  # compiles, or loads, the kernels it needs at this size
    seconds = fastest(lambda: algorithm.improve(problem))
    plan = algorithm.improve(problem).plan
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    ratio = None
    if name in PLAIN and states * ACTIONS <= DENSE_PAIRS:
        ratio = fastest(lambda: dense_policy_iteration(problem, PLAIN[name])) / seconds
    answer.send((seconds, plan.iterations, peak, ratio))


def in_own_process(name: str, states: int) -> tuple[float, int, float, float | None] | None:
    """What `measure` answers, or None where it failed or took more than ten minutes."""
    here, there = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=measure, args=(name, states, there)
    )
    process.start()
    there.close()
    try:
        return here.recv() if here.poll(600) else None
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def batch_times(data_sets: int) -> None:
    """Microseconds an improvement of a 25-state data set, inside one call."""
    problem = random_problem(25)
    counts, rng = problem.counts, np.random.default_rng(1)
    times = rng.poisson(counts.times, (data_sets, counts.times.size))
    starts = np.tile(counts.starts, (data_sets, 1))
    batch = ProblemBatch(
        counts=CountsBatch(
            counts.pairs, counts.offsets, counts.successor, times, counts.rewards, starts
        ),
        behavior=problem.behavior,
        discount=DISCOUNT,
        value_bounds=(0.0, 20.0),
    )
    alone_sets = min(data_sets, 100)
    for algorithm in (BasicRL(), SPIBB(n_wedge=10)):
        improve_batch(algorithm, batch)
        start = time.perf_counter()
        improve_batch(algorithm, batch)
        spent = time.perf_counter() - start
        alone = time.perf_counter()
        for index in range(alone_sets):
            algorithm.improve(batch.problem(index))
        alone = (time.perf_counter() - alone) / alone_sets
        print(
            f"{algorithm.name:28} {spent / data_sets * 1e6:8.1f} µs in a batch of {data_sets:,}, "
            f"{alone * 1e6:8.0f} µs alone ({alone * data_sets / spent:.0f} times as long)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sizes", type=int, nargs="+", default=[25, 400, 10_000, 1_000_000])
    parser.add_argument("--only", nargs="+", default=list(ALGORITHMS), choices=list(ALGORITHMS))
    parser.add_argument("--data-sets", type=int, default=4_000, help="data sets of one batch")
    chosen = parser.parse_args()
    print(f"{ACTIONS} actions, {SUCCESSORS} successors, γ = {DISCOUNT}")
    print(f"{'algorithm':28} {'states':>9} {'seconds':>10} {'rounds':>7} {'GB':>6}  plain/ours")
    for states in chosen.sizes:
        for name in chosen.only:
            if name in NEEDS_LOG and states > 10_000:
                continue  # 50 steps for each of 20 episodes a state: a log of 10⁹ rows
            found = in_own_process(name, states)
            if found is None:
                print(f"{name:28} {states:9,} {'> 10 minutes or failed':>24}")
                continue
            seconds, rounds, peak, ratio = found
            against = "–" if ratio is None else f"{ratio:,.0f}"
            print(f"{name:28} {states:9,} {seconds:10.5f} {rounds:7} {peak:6.2f}  {against}")
    batch_times(chosen.data_sets)


if __name__ == "__main__":
    main()

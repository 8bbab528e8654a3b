"""Models with the structure of those that people make: long ways, many components, few choices.

Each family takes the number of states to come near to. They are planned with γ = 0.99, by our
methods and by Storm, all asked for 1e-6 of the largest value; ours is proven, and the answers are
compared.

Run: .venv/bin/python benchmarks/families.py [--sizes 10000 100000 1000000] [--repeat 3]
    [--least-seconds 0.2]
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import stormpy
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array

from surestep import (
    FiniteMDP,
    Pairs,
    Policy,
    evaluate_with_bound,
    optimal,
    policy_iteration,
    value_iteration,
)
from surestep.errors import NotConverged
from surestep.io import write_mdp
from surestep.planning.iteration import best_actions

SMALLEST = ("--sizes", "400", "--repeat", "1", "--least-seconds", "0")

DISCOUNT, PRECISION = 0.99, 1e-6
DENSE_AT_MOST = 2_000  # states; a dense solution of more takes too long
STORM = "Storm"
PATIENCE = 20.0  # seconds after which a slower method of ours is not run on larger models


class Timing(NamedTuple):
    """The least seconds that a way took, and the value it came to."""

    seconds: float
    value: np.ndarray | None


def model(successor: np.ndarray, probability: np.ndarray, reward: np.ndarray) -> FiniteMDP:
    """The arrays [S, A, k], with reward [S, A]; chances add up, and those of 0 are left out."""
    states, actions, width = successor.shape
    pairs = states * actions
    rows = csr_array(
        (probability.ravel(), successor.ravel(), np.arange(pairs + 1) * width),
        shape=(pairs, states),
    )
    rows.sum_duplicates()
    rows.eliminate_zeros()
    lengths = np.diff(rows.indptr)
    start = np.zeros(states)
    start[0] = 1.0
    return FiniteMDP(
        Pairs.full(states, actions),
        rows.indptr,
        rows.indices,
        rows.data,
        np.repeat(reward.ravel(), lengths),
        np.full(pairs, DISCOUNT),
        start,
        np.where(lengths == 0, reward.ravel(), 0.0),
    )


def protocol(size: int) -> FiniteMDP:
    """Messages sent one after the other, with retries that wait longer each time.

    States are (message, failures, wait). Waiting counts down; sending works with chance 0.7, or is
    tried again after a wait of up to twice the failures; after four failures the message is lost.
    """
    failures, waits = 5, 9
    messages = max(2, size // (failures * waits))
    m, f, w = (part.ravel() for part in np.indices((messages, failures, waits)))

    def state(message, failure, wait):
        return (np.minimum(message, messages - 1) * failures + failure) * waits + wait

    last = f == failures - 1
    again = state(m, np.minimum(f + 1, failures - 1), np.minimum(2 * f, waits - 1))
    sent, lost = state(m + 1, 0 * f, 0 * w), state(m + 1, 0 * f, w * 0 + 4)
    waiting = w > 0
    where = np.stack([sent, np.where(last, lost, again)], axis=1)
    chance = np.tile([0.7, 0.3], (m.size, 1))
    where[waiting] = np.stack([state(m, f, w - 1), state(m, f, w - 1)], axis=1)[waiting]
    chance[waiting] = [1.0, 0.0]
    over = m == messages - 1
    where[over], chance[over] = state(m, f, w)[over, np.newaxis], [1.0, 0.0]
    slow = np.stack([state(m, f, np.minimum(w + 1, waits - 1)), where[:, 0]], axis=1)
    calm = np.stack([where, slow], axis=1)
    chances = np.stack([chance, np.where(over[:, np.newaxis], [1.0, 0.0], [0.5, 0.5])], axis=1)
    calm[over, 1] = state(m, f, w)[over, np.newaxis]
    reward = np.stack([np.where(over, 0.0, 1.0), np.where(over, 0.0, 0.6)], axis=1)
    return model(calm, chances, reward)


def clock(size: int) -> FiniteMDP:
    """A clock that runs out, and a task of ten steps that fails now and then: no cycles at all."""
    steps = 10
    ticks = max(2, size // steps)
    t, s = (part.ravel() for part in np.indices((ticks, steps)))

    def state(tick, step):
        return np.minimum(tick, ticks - 1) * steps + step

    ended = t == ticks - 1
    further, back = np.minimum(s + 1, steps - 1), np.maximum(s - 3, 0)
    careful = np.stack([state(t + 2, further), state(t + 2, s)], axis=1)
    hasty = np.stack([state(t + 1, further), state(t + 1, back)], axis=1)
    where = np.stack([careful, hasty], axis=1)
    chance = np.tile([[0.95, 0.05], [0.8, 0.2]], (t.size, 1, 1))
    chance[ended] = 0.0
    reward = np.repeat((s == steps - 1)[:, np.newaxis] * 1.0, 2, axis=1)
    return model(where, chance, reward)


def workflow(size: int) -> FiniteMDP:
    """Stations of eight states each that work is moved through, with much to and fro in each."""
    inside = 8
    stations = max(2, size // inside)
    rng = np.random.default_rng(0)
    g, i = (part.ravel() for part in np.indices((stations, inside)))
    near = g[:, np.newaxis, np.newaxis] * inside + rng.integers(0, inside, (g.size, 3, 2))
    on = np.minimum(g + rng.integers(1, 4, g.size), stations - 1) * inside
    where = np.concatenate([near, np.repeat(on, 3).reshape(-1, 3, 1)], axis=2)
    chance = rng.dirichlet([4.0, 4.0, 0.5], (g.size, 3))
    return model(where, chance, rng.random((g.size, 3)) * (i == 3)[:, np.newaxis])


def gathering(size: int) -> FiniteMDP:
    """A grid of 8 × 8 to be walked, with two kinds of things to gather and bring home.

    States are (first gathered, second gathered, cell): where one lies, and what is left, are small
    components, one behind the other.
    """
    side = 8
    goal = max(1, round((size / side**2) ** 0.5) - 1)
    a, b, y, x = (part.ravel() for part in np.indices((goal + 1, goal + 1, side, side)))

    def state(first, second, row, column):
        return ((first * (goal + 1) + second) * side + row) * side + column

    where, reward = [], []
    for dy, dx in ((0, 1), (1, 0), (0, -1), (-1, 0)):
        row, column = np.clip(y + dy, 0, side - 1), np.clip(x + dx, 0, side - 1)
        first = (row == side - 1) & (column == side - 1) & (a < goal)
        second = (row == 0) & (column == side - 1) & (b < goal)
        home = np.where(first | second, 0, row), np.where(first | second, 0, column)
        where.append(np.stack([state(a + first, b + second, *home), state(a, b, y, x)], axis=1))
        reward.append(first * 1.0 + second * 2.0)
    chance = np.tile([0.9, 0.1], (a.size, 4, 1))
    return model(np.stack(where, axis=1), chance, np.stack(reward, axis=1))


FAMILIES = {"protocol": protocol, "clock": clock, "workflow": workflow, "gathering": gathering}


def storm_solver(mdp: FiniteMDP, precision: float) -> Callable[[], np.ndarray]:
    """Storm's discounted value iteration on the model that it read from our file."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.umb"
        write_mdp(mdp, path)
        options = stormpy.io.UmbImportOptions()
        options.build_state_valuations = False
        built = stormpy.build_model_from_umb(path, options=options)
    environment = stormpy.Environment()
    settings = environment.solver().min_max()
    settings.precision = stormpy.Rational(precision)
    settings.relative_termination_criterion = False
    (name,) = built.reward_models
    formula = stormpy.parse_property(f'R{{"{name}"}}max=? [ Cdiscount=99/100 ]')

    def solve() -> np.ndarray:
        result = stormpy.model_checking(built, formula, environment=environment)
        return np.array(result.get_value_vector()[: mdp.num_states])

    return solve


def our_solvers(mdp: FiniteMDP, tolerance: float) -> dict[str, Callable[[], np.ndarray]]:
    """Our ways to the best value; the first is the one that chooses by itself."""
    uniform = Policy.uniform(mdp)
    return {
        "optimal": lambda: optimal(mdp, tolerance=tolerance).value,
        "value iteration": lambda: value_iteration(mdp, tolerance=tolerance).value,
        "policy iteration": lambda: (
            policy_iteration(mdp, best_actions(mdp), uniform, tolerance=tolerance).value
        ),
    }


def our_evaluators(mdp: FiniteMDP, tolerance: float) -> dict[str, Callable[[], np.ndarray]]:
    """Our ways to the value of the uniform policy; the first is the one that chooses by itself."""
    uniform = Policy.uniform(mdp)

    def by(method):
        return lambda: evaluate_with_bound(mdp, uniform, method=method, tolerance=tolerance).value

    methods = ["auto", "sparse", "iterative", "components"]
    if mdp.num_states <= DENSE_AT_MOST:
        methods.append("dense")
    return {method: by(method) for method in methods}


def timed(
    solvers: dict[str, Callable[[], np.ndarray]], repeat: int, least_seconds: float
) -> dict[str, Timing]:
    """The least seconds of several runs of each, taking turns: other load then meets all alike.

    Short ones are run many times, one that takes long once; one that gives up has no value.
    """
    timings: dict[str, Timing] = {}
    start, rounds = time.perf_counter(), 0
    while rounds < repeat or time.perf_counter() - start < least_seconds:
        rounds += 1
        for name, solve in solvers.items():
            before = timings.get(name, Timing(float("inf"), None))
            if before.seconds > PATIENCE and name in timings:
                continue
            begin = time.perf_counter()
            try:
                value = solve()
            except NotConverged:
                timings[name] = Timing(float("inf"), None)
                continue
            timings[name] = Timing(min(before.seconds, time.perf_counter() - begin), value)
    return timings


def compare(console: Console, sizes: list[int], repeat: int, least_seconds: float) -> None:
    """A table of all families: ours, the best of our other methods, and Storm."""
    table = Table(title=f"Models people make, γ = {DISCOUNT}, to 1e-6 of the largest value")
    for column in ("family", "states", "ours (s)", "our best (s)", "ratio", "Storm (s)", "ratio"):
        table.add_column(column, justify="right")
    slow: set[tuple[str, str]] = set()
    warm_up()
    for family, make in FAMILIES.items():
        for size in sizes:
            mdp = make(size)
            tolerance = PRECISION * max(1.0, float(np.abs(optimal(mdp).value).max()))
            for task, solvers in (
                ("optimal", our_solvers(mdp, tolerance)),
                ("evaluate", our_evaluators(mdp, tolerance)),
            ):
                if task == "optimal":
                    solvers[STORM] = storm_solver(mdp, tolerance)
                timings = timed(
                    {k: f for k, f in solvers.items() if (family, k) not in slow},
                    repeat,
                    least_seconds,
                )
                slow |= {(family, name) for name, t in timings.items() if t.seconds > PATIENCE}
                first = next(iter(timings.values()))
                for name, timing in timings.items():
                    check(name, timing.value, first.value, tolerance)
                storm = timings.pop(STORM).seconds if STORM in timings else float("nan")
                ours, best = first.seconds, min(t.seconds for t in timings.values())
                table.add_row(
                    f"{family}, {task}",
                    f"{mdp.num_states:,}",
                    f"{ours:.4f}",
                    f"{best:.4f}",
                    f"{ours / best:.2f}",
                    "" if storm != storm else f"{storm:.4f}",
                    "" if storm != storm else f"{storm / ours:.1f}",
                )
    console.print(table)


def check(name: str, value: np.ndarray | None, reference: np.ndarray, tolerance: float) -> None:
    """Ends the comparison where an answer is further off than was asked for."""
    if value is not None and not np.abs(value - reference).max() <= 2 * tolerance:
        raise SystemExit(f"{name} is off by {np.abs(value - reference).max():.2g}")


def warm_up() -> None:
    """Compiles what is needed."""
    for make in FAMILIES.values():
        mdp = make(400)
        for solve in (*our_solvers(mdp, 1e-3).values(), *our_evaluators(mdp, 1e-3).values()):
            solve()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 10**5, 10**6])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument(
        "--least-seconds", type=float, default=0.2, help="of all runs of a comparison together"
    )
    given = parser.parse_args()
    compare(Console(width=120), given.sizes, given.repeat, given.least_seconds)


if __name__ == "__main__":
    main()

"""Planning: ours against SciPy, QuantEcon and Storm on the same random sparse models.

Models: 4 actions, 4 successors a pair, rewards in [0, 1), γ = 0.95. Every solver runs in a process
of its own, is warmed up on a tiny model, and must be right to 1e-6, which is checked. It takes part
up to the size at which it passes 120 s or 8 GB. Building a solver's own model is not counted.

Models with the structure of those that people make are planned by `families.py`.

Run: .venv/bin/python benchmarks/planning.py [--sizes 1000 10000 100000 1000000] [--repeat 3]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import psutil
from rich.console import Console
from rich.table import Table

from surestep import (
    FiniteMDP,
    MDPBatch,
    Pairs,
    Policy,
    evaluate_batch,
    evaluate_with_bound,
    optimal,
    optimal_batch,
    value_iteration,
)
from surestep.kernels.backup import best_values
from surestep.planning.backups import Backup

# The arguments of the quickest run.
SMALLEST = ("--sizes", "100", "--repeat", "1", "--only", "surestep", "--models", "100")
DISCOUNT, PRECISION = 0.95, 1e-6
SECONDS, BYTES = 120.0, 8e9
BUILDING = 10.0  # seconds: what building a model of 10⁶ states takes any of them, and more
OURS = "surestep"
OPTIMISE = {
    OURS: "surestep_optimise",
    "QuantEcon, modified policy iteration": "quantecon_solve",
    "QuantEcon, policy iteration": "quantecon_policy_iteration",
    "QuantEcon, value iteration": "quantecon_value_iteration",
    "SciPy, policy iteration by sparse LU": "scipy_policy_iteration",
    "SciPy, policy iteration by BiCGSTAB": "scipy_krylov_policy_iteration",
    "Storm, discounted value iteration": "storm_solve",
    "Storm, policy iteration (γ as survival)": "storm_policy_iteration",
}
EVALUATE = {
    OURS: "surestep_evaluate",
    "SciPy, sparse LU": "scipy_evaluate",
    "SciPy, BiCGSTAB": "scipy_krylov_evaluate",
}


def our_model(successor, probability, reward) -> FiniteMDP:
    """The arrays [S, A, k] of `competitors.random_mdp` as a model."""
    states, actions, width = successor.shape
    start = np.zeros(states)
    start[0] = 1.0
    return FiniteMDP(
        Pairs.full(states, actions),
        np.arange(states * actions + 1) * width,
        successor.ravel(),
        probability.ravel(),
        np.repeat(reward.ravel(), width),
        np.full(states * actions, DISCOUNT),
        start,
    )


def surestep_optimise(arrays, discount, precision):
    begin = time.perf_counter()
    mdp = our_model(*arrays)
    built = time.perf_counter()
    plan = optimal(mdp, tolerance=precision)
    return plan.value, time.perf_counter() - built, built - begin


def surestep_evaluate(arrays, discount, precision):
    begin = time.perf_counter()
    mdp = our_model(*arrays)
    policy = Policy.uniform(mdp)
    built = time.perf_counter()
    found = evaluate_with_bound(mdp, policy, tolerance=precision)
    return found.value, time.perf_counter() - built, built - begin


# ---- one solver in its own process ------------------------------------------------------------


def child(solver: str, states: int, repeat: int, answer: Path) -> None:
    """Solves one model `repeat` times; writes the values, prints the best time as JSON."""
    import competitors

    solve = globals().get(solver) or getattr(competitors, solver)
    arrays = competitors.random_mdp(states, seed=1)
    solve(competitors.random_mdp(1000, seed=0), DISCOUNT, PRECISION)  # compile and warm up
    seconds, value, spent = [], None, 0.0
    while len(seconds) < repeat and (not seconds or spent + seconds[-1] < SECONDS):
        answer.with_suffix(".begun").touch()
        value, solving, building = solve(arrays, DISCOUNT, PRECISION)
        seconds.append(solving)
        spent += solving
    np.save(answer, value)
    print(json.dumps({"seconds": min(seconds), "building": building}))


def measure(solver: str, states: int, repeat: int, answer: Path) -> dict[str, object]:
    """Runs a solver in its own process and watches its time and memory."""
    command = [sys.executable, __file__, "--child", solver, str(states), str(repeat), str(answer)]
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},  # SciPy's vectors are slower with more
    )
    watched, peak, begun = psutil.Process(process.pid), 0, answer.with_suffix(".begun")
    begun.unlink(missing_ok=True)
    while process.poll() is None:
        try:
            peak = max(peak, watched.memory_info().rss)
        except psutil.NoSuchProcess:
            break
        late = begun.exists() and time.time() - begun.stat().st_mtime > SECONDS + BUILDING
        if late or peak > BYTES:
            process.kill()
            process.communicate()
            return {"failed": "passed 120 s" if late else "passed 8 GB"}
        time.sleep(0.05)
    output, errors = process.communicate()
    if process.returncode != 0:
        return {"failed": (errors.strip().splitlines() or ["no message"])[-1][:60]}
    found = json.loads(output.strip().splitlines()[-1])
    if found["seconds"] > SECONDS:
        return {"failed": "passed 120 s"}
    return {**found, "peak": peak}


# ---- tables -----------------------------------------------------------------------------------


def compare(console: Console, title: str, solvers: dict[str, str], sizes: list[int], repeat: int):
    """A table of one task: every solver at every size, with the ratio of its time to ours."""
    table = Table(title=title)
    table.add_column("states", justify="right")
    table.add_column("solver")
    for column in ("seconds", "times ours", "peak memory", "largest difference"):
        table.add_column(column, justify="right")
    out: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder:
        for states in sizes:
            ours, reference = None, None
            for name, solver in solvers.items():
                if name in out:
                    table.add_row(f"{states:,}", name, f"[dim]{out[name]} before[/]")
                    continue
                print(f"… {title}: {states:,} states, {name}", file=sys.stderr, flush=True)
                answer = Path(folder) / "value.npy"
                found = measure(solver, states, repeat, answer)
                if "failed" in found and name == OURS:
                    raise SystemExit(f"{name} failed at {states} states: {found['failed']}")
                if "failed" in found:
                    out[name] = str(found["failed"])
                    table.add_row(f"{states:,}", name, f"[red]{out[name]}[/]")
                    continue
                value = np.load(answer)
                if name == OURS:
                    ours, reference = found["seconds"], value
                gap = np.abs(value - reference).max()
                if not gap <= 2 * PRECISION:
                    raise SystemExit(f"{name} is off by {gap:.2g} at {states} states")
                table.add_row(
                    f"{states:,}",
                    f"[bold]{name}[/]" if name == OURS else name,
                    f"{found['seconds']:.4f}",
                    f"{found['seconds'] / ours:.1f}",
                    f"{found['peak'] / 1e9:.2f} GB",
                    f"{gap:.1e}",
                )
            table.add_section()
    console.print(table)


def bandwidth(console: Console, states: int) -> None:
    """A value-iteration sweep in bytes a second, against a plain copy and a plain gather."""
    import competitors

    mdp = our_model(*competitors.random_mdp(states, seed=1))
    value, best = np.random.default_rng(0).random(states), np.empty(states)
    value_iteration(our_model(*competitors.random_mdp(100, seed=0)))
    model = Backup.of(mdp)
    sweep = fastest(lambda: best_values(model, value, best))
    moved = sum(array.nbytes for array in model) + mdp.num_transitions * 8 + best.nbytes
    target = np.empty_like(mdp.probability)
    copy = fastest(lambda: np.copyto(target, mdp.probability))
    gather = fastest(lambda: np.take(value, mdp.successor, out=target, mode="clip"))
    rate, copied = moved / sweep / 1e9, 2 * target.nbytes / copy / 1e9
    console.print(
        f"A value-iteration sweep over {states:,} states takes {sweep * 1e3:.0f} ms and moves "
        f"{moved / 1e6:.0f} MB: {rate:.1f} GB/s, {rate / copied:.0%} of a plain NumPy copy "
        f"({copied:.1f} GB/s).\nOf the sweep, {mdp.num_transitions:,} loads go to random places: "
        f"NumPy alone needs {gather * 1e3:.0f} ms to gather those values and do nothing else, "
        f"{gather / sweep:.1f} times the whole sweep."
    )


def batches(console: Console, models: int) -> None:
    """Evaluations and optimisations a second of 25-state models, all in one call."""
    import competitors

    rng = np.random.default_rng(0)
    mdp = our_model(*competitors.random_mdp(25, seed=1))
    weight = rng.random((models, mdp.num_pairs, 4))
    batch = MDPBatch(
        mdp.pairs,
        mdp.offsets,
        mdp.successor,
        (weight / weight.sum(axis=2, keepdims=True)).reshape(models, -1),
        rng.random((models, mdp.num_pairs)),
        mdp.discount,
        mdp.initial,
    )
    policy = Policy.uniform(mdp)
    evaluation = fastest(lambda: evaluate_batch(batch, policy))
    optimisation = fastest(lambda: optimal_batch(batch))
    dense = np.eye(25) - 0.9 / 25
    stacked, right = np.broadcast_to(dense, (models, 25, 25)).copy(), np.ones((models, 25, 1))
    lapack = fastest(lambda: np.linalg.solve(stacked, right))
    console.print(
        f"Batches of {models:,} models with 25 states on {os.cpu_count()} cores: "
        f"{models / evaluation:,.0f} policy evaluations a second (aim: 50,000), "
        f"{models / optimisation:,.0f} optimisations a second; NumPy's batched solve alone, "
        f"without building the systems, does {models / lapack:,.0f}."
    )


def fastest(action, repeat: int = 7) -> float:
    """The best of several runs, after one to warm up."""
    action()
    times = []
    for _ in range(repeat):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def main() -> None:
    if sys.argv[1:2] == ["--child"]:
        solver, states, repeat, answer = sys.argv[2:]
        child(solver, int(states), int(repeat), Path(answer))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**3, 10**4, 10**5, 10**6])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=[*OPTIMISE, *EVALUATE], help="these solvers")
    parser.add_argument("--models", type=int, default=20_000, help="models of one batch")
    arguments = parser.parse_args()
    console = Console(width=120)
    console.print(f"{os.cpu_count()} cores, load before: {os.getloadavg()[0]:.1f}")
    sizes, repeat = arguments.sizes, arguments.repeat
    for title, solvers in (
        ("A best policy, to 1e-6", OPTIMISE),
        ("The value of the uniform policy, to 1e-6", EVALUATE),
    ):
        wanted = arguments.only or solvers
        chosen = {name: solver for name, solver in solvers.items() if name in wanted}
        compare(console, title, chosen, sizes, repeat)
    bandwidth(console, max(sizes))
    batches(console, arguments.models)


if __name__ == "__main__":
    main()

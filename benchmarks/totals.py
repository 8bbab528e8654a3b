"""Programs in the PRISM language without a discount: read and evaluated, by us and by Storm.

Storm asks for R=? [ C ] (a chain) or Rmax=? [ C ], we for `evaluate` or `optimal` at discount 1;
the answers are compared. All take turns in one process, and the quickest of several runs counts.
Reading is the whole of `from_prism`, with the process in which Storm builds the model; beside it
stands Storm's own build with rewards and labels. The program of the default run counts gates, and
has no cycles but that of its end.

Run: .venv/bin/python benchmarks/totals.py [--sizes 10000 300000] [--repeat 5]
    [--program FILE [--constants N=20,K=4] [--reward NAME]]

With `--suite FOLDER`, a clone of https://github.com/prismmodelchecker/prism-benchmarks, all its
chains and MDPs of at most 10,000 states are asked, up to two sizes a program: the least and the
most chance to reach each label, and the least and the most total, in all and until each label.
Answers are compared, and the CPU seconds of all threads added up, without reading; with
OPENBLAS_NUM_THREADS=1 they do not count threads that wait. A total that we refuse is infinite.
"""

import argparse
import csv
import itertools
import math
import re
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import stormpy
from families import timed
from rich.console import Console
from rich.table import Table

from surestep import FiniteMDP, Policy, evaluate, optimal, reachability
from surestep.errors import NeverEnds
from surestep.io import from_prism
from surestep.planning.reaching import Goal

SMALLEST = ("--sizes", "400", "--repeat", "1")
MOST_STATES = 10_000  # of a program of the suite

GATES = """\
dtmc
const int N;
module gates
  c : [0..N] init 0;
  z : [0..N] init 0;
  s : [0..2] init 0;
  x : bool init false;
  [] s=0 & c<N -> 0.9 : (x'=true) & (s'=1) + 0.1 : (s'=1);
  [] s=1 -> 0.98 : (z'=z+(x?1:0)) & (c'=c+1) & (x'=false) & (s'=0)
          + 0.02 : (z'=z+(x?0:1)) & (c'=c+1) & (x'=false) & (s'=0);
  [] s=0 & c=N -> (s'=2);
  [] s=2 -> true;
endmodule
rewards s=0 & c=N : z/N; endrewards
"""


class Asked(NamedTuple):
    """A program, its constants and the reward structure that counts."""

    path: Path
    constants: str
    reward: str


def storm_build(asked: Asked):
    """Storm's model, with labels and rewards."""
    program = stormpy.parse_prism_program(asked.path)
    if asked.constants:
        program = stormpy.io.instantiate_constants(program, asked.constants)[0]
    options = stormpy.BuilderOptions()
    options.set_build_all_reward_models()
    options.set_build_all_labels()
    return stormpy.build_model(program, options=options)


def row(asked: Asked, repeat: int) -> tuple[str, ...]:
    """Reads and evaluates one program by both, and compares the answers."""

    def best(**ways: Callable[[], object]) -> list[float]:
        return [timing.seconds for timing in timed(ways, repeat, 0.0).values()]

    def read():
        return from_prism(asked.path, 1.0, asked.constants, reward=asked.reward, initial="uniform")

    mdp, built = read(), storm_build(asked)
    chain = mdp.num_pairs == mdp.num_states
    structure = f'{{"{asked.reward}"}}' if asked.reward else ""
    formula = stormpy.parse_property(f"R{structure}{'' if chain else 'max'}=? [ C ]")
    policy = Policy.uniform(mdp)

    def ours():
        return evaluate(mdp, policy) if chain else optimal(mdp).value

    theirs = stormpy.model_checking(built, formula).get_value_vector()
    starts = list(built.initial_states)
    expected = sum(theirs[state] for state in starts) / len(starts)
    found = float(mdp.initial @ ours())
    if not abs(found - expected) <= 1e-5 * max(1.0, abs(expected)):
        raise SystemExit(f"{asked.path.name}: ours is {found}, Storm's is {expected}")
    reading, building = best(ours=read, storm=lambda: storm_build(asked))
    solving, checking = best(ours=ours, storm=lambda: stormpy.model_checking(built, formula))
    return (
        f"{asked.path.stem} {asked.constants}",
        f"{mdp.num_states:,}",
        *(f"{reading:.3f}", f"{building:.3f}", f"{reading / building:.2f}"),
        *(f"{solving:.4f}", f"{checking:.4f}", f"{solving / checking:.2f}"),
    )


class Query(NamedTuple):
    """A question about a program: our model, Storm's, what Storm is asked, and our answer."""

    title: str
    built: object
    formula: str
    ours: Callable[[], float]


def suite(folder: Path) -> Iterator[Query]:
    """Yields the queries of a clone of the PRISM benchmarks."""
    for listed in sorted(folder.glob("models/*/*/models.csv")):
        if listed.parts[-3] not in ("dtmcs", "mdps"):
            continue
        taken = Counter()
        with listed.open() as file:
            for line in csv.DictReader(file):
                path = listed.parent / line["model_file"]
                taken[path] += int(line["states"]) <= MOST_STATES
                if path.exists() and int(line["states"]) <= MOST_STATES and taken[path] <= 2:
                    yield from queries(path, line["model_consts"])


def queries(path: Path, constants: str) -> Iterator[Query]:
    """Yields the queries of one program."""
    text = path.read_text()
    rewards = re.findall(r'^\s*rewards\s*"([^"]*)"', text, re.MULTILINE)
    labels = re.findall(r'^\s*label\s*"([^"]*)"', text, re.MULTILINE)
    built = storm_build(Asked(path, constants, ""))
    if not rewards or len(built.initial_states) > 1:
        return
    title = f"{path.stem} {constants}"
    for reward, end in itertools.product(rewards, [None, *labels]):
        mdp = from_prism(path, 1.0, constants, reward=reward, end=end)
        start = int(mdp.initial.argmax())
        for goal in ("most", "least"):
            storm = "" if mdp.num_pairs == mdp.num_states else {"most": "max", "least": "min"}[goal]
            until = "C" if end is None else f'F "{end}"'
            yield Query(
                title,
                built,
                f'R{{"{reward}"}}{storm}=? [ {until} ]',
                partial(total, mdp, start, goal),
            )
            for label in labels if end is None and reward == rewards[0] else ():
                if mdp.marks[label].any():
                    formula = f'P{storm}=? [ F "{label}" ]'
                    yield Query(title, built, formula, partial(chance, mdp, start, label, goal))


def total(mdp: FiniteMDP, start: int, goal: str) -> float:
    """Returns the best total from a state, or ∞ if it is refused as endless."""
    try:
        return float(optimal(mdp, minimise=goal == "least").value[start])
    except NeverEnds:
        return math.inf


def chance(mdp: FiniteMDP, start: int, label: str, goal: Goal) -> float:
    """Returns the chance from a state to reach a label, between its proven bounds."""
    reach = reachability(mdp, mdp.marks[label], goal)
    return float(reach.lower[start] + reach.upper[start]) / 2


def show_suite(folder: Path, repeat: int) -> None:
    """Asks all queries of a clone of the PRISM benchmarks, and adds up the times."""
    spent: dict[str, list[tuple[float, float]]] = {}
    for query in suite(folder):
        asked = stormpy.parse_property(query.formula)
        values, seconds = [], []
        for ask in (query.ours, lambda q=query, asked=asked: storm_value(q.built, asked)):
            times = []
            for _ in range(repeat):
                began = time.process_time()
                value = ask()
                times.append(time.process_time() - began)
            values.append(value)
            seconds.append(min(times))
        found, expected = values
        if found != expected and not abs(found - expected) <= 1e-4 * max(1.0, abs(expected)):
            raise SystemExit(f"{query.title}, {query.formula}: {found}, Storm's is {expected}")
        spent.setdefault(query.title, []).append((seconds[0], seconds[1]))
    table = Table(title="Queries of the PRISM benchmarks, CPU seconds")
    for column in ("program", "queries", "ours", "Storm"):
        table.add_column(column, justify="right")
    every = [pair for mine in spent.values() for pair in mine]
    for title, mine in [*spent.items(), (f"all {len(spent)}", every)]:
        table.add_row(
            title, str(len(mine)), *(f"{sum(one):.4f}" for one in zip(*mine, strict=True))
        )
    Console(width=120).print(table)


def storm_value(built, asked) -> float:
    """Returns Storm's answer from the initial state."""
    return stormpy.model_checking(built, asked).get_value_vector()[built.initial_states[0]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 3 * 10**5])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--program", type=Path, help="a file, instead of the gates")
    parser.add_argument("--constants", default="")
    parser.add_argument("--reward", default="")
    parser.add_argument("--suite", type=Path, help="a clone of the PRISM benchmarks, instead")
    given = parser.parse_args()
    if given.suite:
        show_suite(given.suite, given.repeat)
        return
    table = Table(title="Totals at γ = 1, seconds and the ratio of ours to Storm's")
    for column in ("program", "states", "read", "Storm", "ratio", "solve", "Storm", "ratio"):
        table.add_column(column, justify="right")
    with tempfile.TemporaryDirectory() as folder:
        path = given.program or Path(folder) / "gates.prism"
        if given.program:
            sizes = [given.constants]
        else:
            path.write_text(GATES)
            sizes = [f"N={round((size / 1.5) ** 0.5)}" for size in given.sizes]
        for constants in sizes:
            table.add_row(*row(Asked(path, constants, given.reward), given.repeat))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()

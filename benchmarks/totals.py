"""Programs in the PRISM language without a discount: read and evaluated, by us and by Storm.

Storm asks for R=? [ C ] (a chain) or Rmax=? [ C ], we for `evaluate` or `optimal` at discount 1;
the answers are compared. All take turns in one process, and the quickest of several runs counts.
Reading is the whole of `from_prism`, with the process in which Storm builds the model; beside it
stands Storm's own build with rewards and labels. The program of the default run counts gates, and
has no cycles but that of its end.

Run: .venv/bin/python benchmarks/totals.py [--sizes 10000 300000] [--repeat 5]
    [--program FILE [--constants N=20,K=4] [--reward NAME]]
"""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import stormpy
from families import timed
from rich.console import Console
from rich.table import Table

from surestep import Policy, evaluate, optimal
from surestep.io import from_prism

SMALLEST = ("--sizes", "400", "--repeat", "1")

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[10**4, 3 * 10**5])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--program", type=Path, help="a file, instead of the gates")
    parser.add_argument("--constants", default="")
    parser.add_argument("--reward", default="")
    given = parser.parse_args()
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

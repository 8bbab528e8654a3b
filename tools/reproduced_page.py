"""Makes the figures, tables and judgements of docs/reproduced.md.

python tools/reproduced_page.py [RUNS]   draws Figures 3 to 6 from RUNS, by default runs/paper, with
                                         a table beside each, and writes the page from these tables
python tools/reproduced_page.py --page   only writes the page anew, from the tables that are there

What the paper says stands below, word by word; what comes out here, and whether that agrees, is
computed from the tables in docs/reproduced.
"""

import csv
import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from coverage_page import around_block
from figure_3 import SETTING, ZETA, draw_n_wedge
from surestep._files import write_together
from surestep.bounds import n_wedge
from surestep.experiments import read_run
from surestep.figures.figure import draw_run, write_files

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE, FOLDER = DOCS / "reproduced.md", DOCS / "reproduced"
FIGURES = {"gridworld": "figure-4", "wet-chicken": "figure-5", "resource-gathering": "figure-6"}
NAMES = {
    "gridworld": "Gridworld",
    "wet-chicken": "Wet Chicken",
    "resource-gathering": "Resource Gathering",
}
METHODS = ("spibb", "spibb-2s", "spibb-beta")
CAPTIONS = {  # N∧ of SPIBB, 2s and β, as the captions have them
    "gridworld": ((100, 55, 27), (200, 110, 67), (400, 219, 146)),
    "wet-chicken": ((60, 34, 10), (120, 67, 36), (180, 101, 61)),
    "resource-gathering": ((600, 43, 12), (800, 57, 25), (1000, 71, 37)),
}
SECONDS = {"gridworld": 45.6, "wet-chicken": 120.0, "resource-gathering": 24 * 60.0}
STARTS, HALF, NEAR = 0.1, 0.5, 0.95  # shares of what can be gained
VISIBLE = 0.01  # of what can be gained: a loss that can be seen in a figure
SPOTS = [  # experiment, algorithm, N∧ of SPIBB, trajectories, mean, 10 % CVaR, digits
    ("paper/gridworld", "basic-rl", None, 100, 0.565, 0.415, 3),
    ("paper/gridworld", "spibb", 100, 200, 0.508, 0.495, 3),
    ("paper/gridworld", "spibb-2s", 100, 200, 0.543, 0.525, 3),
    ("paper/gridworld", "spibb-beta", 100, 100, 0.544, 0.522, 3),
    ("paper/gridworld", "spibb-beta", 100, 1000, 0.593, 0.589, 3),
    ("paper/wet-chicken", "spibb", 60, 1000, 27.7, 27.3, 1),
    ("paper/wet-chicken", "spibb-beta", 60, 1000, 36.8, 35.3, 1),
]  # of 1000 repetitions each, made with the published protocol by others


class Statement(NamedTuple):
    """Something that the paper says, what comes out here, and whether that agrees."""

    paper: str
    here: str
    agrees: bool


class Curve(NamedTuple):
    """One method in one environment: the rows of its table by data size."""

    algorithm: str
    n_wedge: int | None
    used: int | None
    behavior: float
    optimal: float
    rows: tuple[dict[str, str], ...]

    def gains(self) -> list[tuple[int, float]]:
        """Returns the mean gain as a share of the largest possible one, by data size."""
        room = self.optimal - self.behavior
        return [(int(r["episodes"]), (float(r["mean"]) - self.behavior) / room) for r in self.rows]

    def reaches(self, share: float) -> float:
        """Returns the data size at which the mean gain reaches a share, interpolated."""
        gains = self.gains()
        if gains[0][1] >= share:
            return float(gains[0][0])
        for (size, gain), (larger, higher) in itertools.pairwise(gains):
            if gain < share <= higher:
                part = (share - gain) / (higher - gain)
                return math.exp(math.log(size) + part * math.log(larger / size))
        return math.inf

    def below(self, column: str, slack: float = 0.0) -> list[int]:
        """Returns the data sizes at which a number is below that of π_b."""
        limit = self.behavior - slack * (self.optimal - self.behavior)
        return [int(r["episodes"]) for r in self.rows if r[column] and float(r[column]) < limit]


# ---- what is drawn -----------------------------------------------------------------------------


def draw_all(runs: Path, folder: Path) -> list[Path]:
    """Draws the figures of the runs, with tables of their numbers and of the time they took."""
    folder.mkdir(parents=True, exist_ok=True)
    figures = [draw_n_wedge(folder / "figure-3.svg")]
    lines = ["environment,repetitions,seconds"]
    for name, figure in FIGURES.items():
        run = read_run(runs / name)
        figures.append(draw_run(run, folder / f"{figure}.svg"))
        lines.append(f"{name},{run.manifest.repetitions},{run.manifest.seconds:.1f}")
    times = folder / "times.csv"
    write_together({times: ["\n".join([*lines, ""]).encode()]})
    return [*write_files(figures), times]


# ---- what is said ------------------------------------------------------------------------------


def write_page(page: Path, folder: Path) -> None:
    """Writes the blocks of the page from the tables in the folder; what is around them is kept."""
    for name, content in blocks(folder):
        before, after = around_block(page, name)
        write_together({page: [f"{before}\n\n{content}\n\n{after}".encode()]})


def blocks(folder: Path) -> Iterator[tuple[str, str]]:
    """Yields the name and the content of every block of the page."""
    curves = {name: curves_of(folder / f"{figure}.csv") for name, figure in FIGURES.items()}
    yield "figure-3", statements(of_figure_3(rows_of(folder / "figure-3.csv")))
    for name, figure in FIGURES.items():
        yield (
            figure,
            "\n\n".join(
                [statements(of_environment(name, curves[name])), sizes_table(curves[name])]
            ),
        )
    yield "all", statements(of_all(curves))
    yield "unsaid", "\n".join(unsaid(curves))
    yield "spots", spots_table(curves)
    yield "times", times_table(rows_of(folder / "times.csv"))


def rows_of(path: Path) -> list[dict[str, str]]:
    """Returns the lines of a table."""
    return list(csv.DictReader(path.read_text(encoding="utf-8").splitlines()))


def curves_of(path: Path) -> list[Curve]:
    """Returns the methods of a table."""
    together: dict[tuple[str, str], list[dict[str, str]]] = {}
    for row in rows_of(path):
        together.setdefault((row["algorithm"], row["n_wedge"]), []).append(row)
    return [
        Curve(
            algorithm,
            int(n_wedge) if n_wedge else None,
            int(rows[0]["n_wedge_used"]) if rows[0]["n_wedge_used"] else None,
            float(rows[0]["behavior_performance"]),
            float(rows[0]["optimal_performance"]),
            tuple(sorted(rows, key=lambda row: int(row["episodes"]))),
        )
        for (algorithm, n_wedge), rows in together.items()
    ]


def triples(curves: Sequence[Curve]) -> list[tuple[Curve, ...]]:
    """Returns SPIBB, 2s and β for each N∧, smallest first."""
    given = sorted({curve.n_wedge for curve in curves if curve.n_wedge is not None})
    at = {(curve.algorithm, curve.n_wedge): curve for curve in curves}
    return [tuple(at[method, n_wedge] for method in METHODS) for n_wedge in given]


def basic_rl(curves: Sequence[Curve]) -> Curve:
    """Returns Basic RL."""
    return next(curve for curve in curves if curve.algorithm == "basic-rl")


def of_figure_3(rows: Sequence[dict[str, str]]) -> list[Statement]:
    """Judges what the paper says of its Figure 3."""
    at = {int(row["states"]): {key: float(value) for key, value in row.items()} for row in rows}
    few, many, most = (min(at, key=lambda n: abs(n - goal)) for goal in (100, 10**6, 10**7))
    grown = {key: at[most][key] / at[many][key] for key in ("spibb", "2s", "beta")}
    factor = at[few]["spibb"] / at[few]["2s"]
    tenfold = next(size for size in itertools.count(2) if visits_factor(size) >= 10)
    return [
        Statement(
            "“N∧^SPIBB grows linearly with the number of states, whereas N∧^2s and N∧^β are "
            "logarithmic in the number of states”",
            f"from 10⁶ to 10⁷ states: {grown['spibb']:.2f}, {grown['2s']:.2f} and "
            f"{grown['beta']:.2f} times as many",
            9.5 < grown["spibb"] < 10.5 and grown["2s"] < 1.2 and grown["beta"] < 1.2,
        ),
        Statement(
            "“N∧^β is significantly below N∧^2s”",
            f"{at[few]['2s'] / at[few]['beta']:.2f} times fewer at {few} states, "
            f"{at[most]['2s'] / at[most]['beta']:.2f} times at 10⁷",
            all(numbers["beta"] < numbers["2s"] for numbers in at.values()),
        ),
        Statement(
            "“over 10 million samples per state-action pair” even for 100 states",
            f"{at[few]['2s'] / 1e6:.1f} (2s) and {at[few]['beta'] / 1e6:.1f} (β) million",
            at[few]["beta"] > 1e7,
        ),
        Statement(
            "“the difference between N∧^SPIBB and N∧^2s is for small MDPs of around a hundred "
            "states already a factor 10”",
            f"{factor:.1f} at {few} states; 10 from {tenfold} states on",
            factor >= 9,
        ),
    ]


def visits_factor(states: int) -> float:
    """Returns N∧^SPIBB / N∧^2s in the setting of Figure 3."""
    size = replace(SETTING, states=states)
    return n_wedge("spibb", ZETA, size) / n_wedge("2s", ZETA, size)


def of_environment(name: str, curves: Sequence[Curve]) -> list[Statement]:
    """Judges the captions of a figure, and what the paper says of all three of them."""
    found = tuple(tuple(curve.used for curve in triple) for triple in triples(curves))
    written = "; ".join(" / ".join(map(str, triple)) for triple in CAPTIONS[name])
    basic = basic_rl(curves)
    said = [
        Statement(
            f"captions, N∧ of SPIBB / 2s / β: {written}",
            "the same" if found == CAPTIONS[name] else str(found),
            found == CAPTIONS[name],
        ),
        Statement(
            "“our methods (2S and Beta) are quicker to converge to an optimal policy than standard "
            "SPIBB. Beta is, as expected, the fastest”",
            f"trajectories until {percent(NEAR)} of the possible gain: "
            + compared_sizes(curves, NEAR),
            all(
                beta.reaches(NEAR) <= two.reaches(NEAR) < spibb.reaches(NEAR)
                for spibb, two, beta in triples(curves)
            ),
        ),
        Statement(
            "Basic RL is unreliable: CVaR values “significantly below the baseline performance for "
            "several data set sizes”",
            "with the whole interval below π_b: 10 % CVaR at "
            f"{listed(basic.below('cvar10_high'))}, 1 % CVaR at "
            f"{listed(basic.below('cvar1_high'))} trajectories",
            len(basic.below("cvar1_high")) >= 2,
        ),
    ]
    if name == "gridworld":
        factors = [
            spibb.reaches(STARTS) / beta.reaches(STARTS) for spibb, _, beta in triples(curves)
        ]
        said.append(
            Statement(
                "Beta “starts to improve over the behavior policy for data sets about half the "
                "size compared to SPIBB in the Gridworld”",
                f"{percent(STARTS)} of the possible gain are reached with "
                + " / ".join(f"{factor:.1f}" for factor in factors)
                + " times fewer trajectories",
                all(1.5 <= factor <= 2.5 for factor in factors),
            )
        )
    return said


def of_all(curves: dict[str, list[Curve]]) -> list[Statement]:
    """Judges what the paper says of all three environments together."""
    pairs = [
        (spibb.used / beta.used, spibb.reaches(HALF) / beta.reaches(HALF))
        for mine in curves.values()
        for spibb, _, beta in triples(mine)
    ]
    off = max(max(visits / sizes, sizes / visits) for visits, sizes in pairs)
    ordered = all(
        spibb.used >= two.used >= beta.used
        for mine in curves.values()
        for spibb, two, beta in triples(mine)
    )
    return [
        Statement(
            "“for most MDPs – including our examples – we have N∧^β ≤ N∧^2s ≤ N∧^SPIBB”",
            "in all nine panels",
            ordered,
        ),
        Statement(
            "“while theoretically, the factor between the different N∧ does not directly translate "
            "to the whole data set size, we see that in practice on all three benchmarks this is "
            "roughly the case”",
            "N∧ of SPIBB over that of β, and trajectories until half of the possible gain of SPIBB "
            "over those of β: "
            + "; ".join(f"{visits:.1f} and {sizes:.1f}" for visits, sizes in pairs),
            off < 1.5,
        ),
    ]


def unsaid(curves: dict[str, list[Curve]]) -> Iterator[str]:
    """Yields what the tables show and the paper's text does not say."""
    basic = basic_rl(curves["gridworld"])
    sizes = [size for size in basic.below("cvar10") if size >= 1000]
    yield (
        "- **Basic RL and much data on Gridworld**: its 10 % CVaR is below π_b at "
        f"{listed(sizes)} trajectories too (with the whole interval at "
        f"{listed(basic.below('cvar10_high'))})."
    )
    for name, mine in curves.items():
        unsafe = [
            f"{label} {curve.used} at {listed(curve.below('cvar1', VISIBLE))}"
            for triple in triples(mine)
            for label, curve in zip(("SPIBB", "2s", "β"), triple, strict=True)
            if curve.below("cvar1", VISIBLE)
        ]
        words = "; ".join(unsafe) if unsafe else "at no size"
        yield (
            f"- **The worst per cent of SPIBB and its variants on {NAMES[name]}** is below π_b by "
            f"more than {percent(VISIBLE)} of the possible gain: "
            f"{words}{' trajectories' if unsafe else ''}."
        )
    worst = max(
        (float(row["worse"]), curve.used, int(row["episodes"]), name)
        for name, mine in curves.items()
        for triple in triples(mine)
        for curve in triple
        for row in curve.rows
    )
    yield (
        f"- **Most often worse than π_b** of all these is N∧ = {worst[1]} on {NAMES[worst[3]]} "
        f"with {worst[2]:,} trajectories: in {percent(worst[0])} of the repetitions."
    )


# ---- as Markdown -------------------------------------------------------------------------------


def statements(said: Sequence[Statement]) -> str:
    """Returns statements as a table: the paper, here, and whether they agree."""
    rows = [
        f"| {raised(one.paper)} | {one.here} | {'agrees' if one.agrees else '**differs**'} |"
        for one in said
    ]
    return "\n".join(["| the paper | here | |", "| --- | --- | --- |", *rows])


def raised(text: str) -> str:
    """Returns a text with the names of N∧ as formulas."""
    for name, written in (("SPIBB", r"\mathrm{SPIBB}"), ("2s", "2s"), ("β", r"\beta")):
        text = text.replace(f"N∧^{name}", rf"$N_\wedge^{{{written}}}$")
    return text


def sizes_table(curves: Sequence[Curve]) -> str:
    """Returns how many trajectories the methods need, for each N∧."""
    lines = [
        "| N∧ of SPIBB / 2s / β | 10 % of the possible gain | half of it | 95 % of it |",
        "| --- | --- | --- | --- |",
    ]
    for triple in triples(curves):
        cells = [
            " / ".join(size_words(curve.reaches(share)) for curve in triple)
            for share in (STARTS, HALF, NEAR)
        ]
        lines.append(f"| {' / '.join(str(curve.used) for curve in triple)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def compared_sizes(curves: Sequence[Curve], share: float) -> str:
    """Returns the data sizes at which methods reach a share, for each N∧."""
    return "; ".join(
        " / ".join(size_words(curve.reaches(share)) for curve in triple)
        for triple in triples(curves)
    )


def spots_table(curves: dict[str, list[Curve]]) -> str:
    """Returns single numbers beside those that others got from the published protocol."""
    lines = [
        "| | trajectories | mean, theirs | here | 10 % CVaR, theirs | here |",
        "| --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    labels = {"basic-rl": "Basic RL", "spibb": "SPIBB", "spibb-2s": "2s", "spibb-beta": "β"}
    for experiment, algorithm, given, episodes, mean, tail, digits in SPOTS:
        name = experiment.removeprefix("paper/")
        curve = next(
            one for one in curves[name] if (one.algorithm, one.n_wedge) == (algorithm, given)
        )
        row = next((r for r in curve.rows if int(r["episodes"]) == episodes), None)
        if row is None:
            continue
        ours = [f"{float(row[metric]):.{digits}f}" for metric in ("mean", "cvar10")]
        used = "" if curve.used is None else f" {curve.used}"
        lines.append(
            f"| {NAMES[name]}, {labels[algorithm]}{used} | {episodes:,} | {mean} | {ours[0]} "
            f"| {tail} | {ours[1]} |"
        )
    return "\n".join(lines)


def times_table(rows: Sequence[dict[str, str]]) -> str:
    """Returns the time of one core that the runs took, beside that of the published code."""
    lines = [
        "| | published code, one repetition | here, one repetition | all repetitions here |",
        "| --- | ---: | ---: | ---: |",
    ]
    for row in rows:
        seconds, repetitions = float(row["seconds"]), int(row["repetitions"])
        lines.append(
            f"| {NAMES[row['environment']]} | {SECONDS[row['environment']]:,.0f} s | "
            f"{1e3 * seconds / repetitions:,.0f} ms | {seconds:,.0f} s ({repetitions:,}) |"
        )
    return "\n".join(lines)


def percent(share: float) -> str:
    """Returns a share in per cent."""
    return f"{100 * share:.3g} %"


def size_words(size: float) -> str:
    """Returns a data size with two digits."""
    return "never" if math.isinf(size) else f"{int(float(f'{size:.2g}')):,}"


def listed(sizes: Sequence[int]) -> str:
    """Returns data sizes in a row."""
    return ", ".join(f"{size:,}" for size in sizes) or "none"


def main(arguments: Sequence[str], page: Path = PAGE, folder: Path = FOLDER) -> None:
    """Draws, unless only the page is asked for, and writes the page."""
    if list(arguments) != ["--page"]:
        for path in draw_all(Path(arguments[0] if arguments else "runs/paper"), folder):
            print(f"wrote {path}")
    write_page(page, folder)
    print(f"wrote {page}")


if __name__ == "__main__":
    main(sys.argv[1:])

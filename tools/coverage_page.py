"""Makes the tables and figures of docs/coverage.md from the runs of `surestep run coverage`.

Also from that of `python tools/verdicts.py`.

python tools/coverage_page.py [RUNS]     RUNS holds the runs by name, by default runs/coverage
python tools/coverage_page.py --figures  only draws the figures anew, from the tables that are there

The page has three blocks: the benchmarks of the field, worlds that are hard for claims, and the
verdicts of results there. Each run has a section with its figure and one line per certifier; its
full tables are CSV files in docs/coverage. A block of which there is no run stays as it is.
"""

import csv
import itertools
import math
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np

import careless_logs
from judged_results import (
    VerdictCount,
    all_together,
    read_verdicts,
    refuted_verdicts,
    verdict_counts,
)
from surestep._files import write_together
from surestep.errors import InvalidParameter
from surestep.experiments import (
    Cell,
    CellSummary,
    cell_summaries,
    family_summaries,
    read_run,
    refuted,
)
from surestep.experiments.intervals import binomial_interval
from surestep.experiments.metrics import FAMILY_WISE, first_certified, without_size
from surestep.experiments.run import Store
from surestep.experiments.tables import certifier_name, task_name
from surestep.figures.curves import draw_layout, layout_of
from surestep.figures.figure import claim_points, draw_run, write_files

DOCS = Path(__file__).resolve().parent.parent / "docs"
BENCHMARKS = (
    "gridworld", "wet-chicken", "resource-gathering", "random-mdps", "chosen", "chosen-random",
    "rehearsed", "held-out", "settings", "trajectories",
)  # fmt: skip
HARD = ("alike", "noisy", "bandit", "rare", "adaptive", "icu-sepsis")
BROKEN = ("broken", "undeclared")  # an assumption does not hold: shown beside
BROKEN_FAMILIES = ("coarse", "hidden-cause", "copied", "outcome-in-state", "stops-that-know")
DELTA = 0.1
NOT_JUDGED = "An assumption does not hold here. The claims are shown, and not judged."
CARELESS = (
    "What is wrong here is in the log, or in what is said of it. Such logs may be refused, or a "
    "check of them fails; none may be proved better that is not."
)
NAMED = 6  # cells that are called by name
STANDINGS = ("proved", "rewards-within-seen", "posterior", "asymptotic", "as-published")


def write_coverage_page(
    page: Path,
    runs: Sequence[Path],
    figures: Path,
    *,
    block: str = "coverage",
    beside: Sequence[Path] = (),
) -> list[Path]:
    """Writes the runs between the marks of a block of the page, and draws each run.

    The full tables of a run become CSV files beside its figure. The runs `beside` are shown and
    not judged: an assumption does not hold there. Text outside of the marks is kept. Returns the
    files that were written.
    """
    around = around_block(page, block)
    tables = [Store(run).read_table() for run in (*runs, *beside)]
    cells = [cell_summaries(table) for table in tables]
    families = [family_summaries(table) for table in tables]
    figures.mkdir(parents=True, exist_ok=True)
    judged = (list(itertools.chain(*summaries[: len(runs)])) for summaries in (cells, families))
    parts = ["\n".join(verdicts(*judged))]
    written: list[Path] = []
    for run, mine, pooled in zip((*runs, *beside), cells, families, strict=True):
        title = Store(run).read_manifest().title.removeprefix("Coverage: ")
        picture = figures / f"{run.name}.svg"
        written += write_files([draw_run(read_run(run), picture)])
        tables = [figures / kind / f"{run.name}.csv" for kind in ("by-certifier", "by-size")]
        for path, rows in zip(tables, (overview(mine), details(pooled)), strict=True):
            write_csv(path, rows)
        written += tables
        links = (path.relative_to(page.parent).as_posix() for path in (picture, *tables))
        parts += section(title, *links, pooled, judged=run not in beside)
    before, after = around
    content = "\n\n".join(parts)
    write_together({page: [f"{before}\n\n{content}\n\n{after}".encode()]})
    return [page, *written]


def redraw(folder: Path) -> Iterator[Path]:
    """Draws each figure of a folder anew from the tables beside it, and yields the pictures."""
    for table in sorted(folder.glob("*.csv")):
        cells = pooled_cells(table, folder / "by-size" / table.name)
        layout = layout_of(claim_points(cells))
        picture = table.with_suffix(".svg")
        picture.write_bytes(draw_layout(layout, "svg", intervals=True, bars=True))
        yield picture


def pooled_cells(every: Path, by_size: Path) -> list[CellSummary]:
    """Returns the summaries of a run by family, as far as figures show them, from its tables.

    Counts are those of all MDPs together; how tight claims are is in the table by size alone.
    """
    tightness = defaultdict(list)
    for line in read_csv(by_size):
        tightness[line["task"], line["certifier"], line["episodes"]].append(line["tightness"])
    groups: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for line in read_csv(every):
        groups.setdefault(tuple(line[x] for x in Cell._fields if x != "environment"), []).append(
            line
        )
    cells = []
    for lines in groups.values():
        first = lines[0] | {"environment": ""}
        n_wedge, episodes = float(first["n_wedge"] or "nan"), int(first["episodes"])
        key = {name: first[name] for name in Cell._fields} | {"n_wedge": n_wedge}
        numbers = dict.fromkeys(CellSummary._fields, math.nan)
        many = sum(int(line["repetitions"]) for line in lines)
        wrong = sum(int(line["violations"]) for line in lines)
        gains = sum(round(float(line["positive"]) * int(line["repetitions"])) for line in lines)
        cell = CellSummary(**numbers)._replace(
            cell=Cell(**key | {"episodes": episodes}),
            delta=float(first["delta"]),
            violation=binomial_interval(wrong, many),
            positive=binomial_interval(gains, many),
        )
        names = task_name(cell), certifier_name(cell), first["episodes"]
        cells.append(cell._replace(tightness=float(tightness[names].pop(0) or "nan")))
    return cells


def read_csv(path: Path) -> list[dict[str, str]]:
    """Returns the lines of a table by the names of its columns."""
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def section(
    title: str, picture: str, by_certifier: str, by_size: str, pooled: list[CellSummary],
    *, judged: bool,
) -> list[str]:  # fmt: skip
    """Returns the section of a run: its figure, one line per certifier, and its full tables."""
    every = picture.removesuffix(".svg") + ".csv"
    made = f"`surestep run coverage/{Path(picture).stem}`"
    return [
        f"## {title[:1].upper()}{title[1:]}",
        f"![{title}]({picture})",
        *([] if judged else [NOT_JUDGED]),
        "\n".join(worst_rows(pooled)),
        f"{made}: [by certifier]({by_certifier}), [by size]({by_size}), [every MDP]({every})",
    ]


def around_block(page: Path, block: str) -> tuple[str, str]:
    """Returns what stands before and after the content of a block, its marks included."""
    begin, last = (f"<!-- {block}: {where} -->" for where in ("begin", "end"))
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise InvalidParameter(f"cannot read {page}: {problem}") from None
    before, mark, rest = text.partition(begin)
    _, end, after = rest.partition(last)
    if not (mark and end):
        raise InvalidParameter(f"{page} lacks the marks {begin} and {last}, in this order")
    return before + mark, end + after


def write_verdicts(
    page: Path,
    counts: Sequence[VerdictCount],
    beside: Sequence[VerdictCount],
    delta: float,
    careless: Sequence[VerdictCount] = (),
) -> Path:
    """Writes how often verdicts were wrong between the marks `verdicts` of the page.

    The counts `beside` are of families in which an assumption does not hold, and are not judged.
    Those of `careless` logs are judged, and each has a line.
    """
    before, after = around_block(page, "verdicts")
    judged = [*counts, *careless]
    wrong = refuted_verdicts(judged, delta)
    names = "; ".join(f"{count.family}, {count.episodes:,}" for count in wrong)
    lines = [
        f"*Proved better* in {len(judged)} cells, refuted at δ = {delta:g}: {names or 'none'}.",
        "",
        *verdict_rows(all_together(counts)),
    ]
    if careless:
        lines += ["", CARELESS, "", *verdict_rows(careless)]
    if beside:
        lines += ["", NOT_JUDGED, "", *verdict_rows(beside)]
    content = "\n".join(lines)
    write_together({page: [f"{before}\n\n{content}\n\n{after}".encode()]})
    return page


def verdict_rows(counts: Sequence[VerdictCount]) -> Iterator[str]:
    """Yields one line for each of the counts."""
    yield (
        "| family | trajectories | logs | mean Δ | proved better | wrong (95 %) | Δ ≤ 0 | "
        "believed better | wrong (95 %) | Δ ≤ 0 |"
    )
    yield "| --- |" + " ---: |" * 9
    for count in counts:
        yield row(
            count.family,
            f"{count.episodes:,}",
            f"{count.logs:,}",
            value(count.mean_gain),
            rate(count.proved / count.logs),
            rate_of(count.proved_wrong, count.logs),
            rate(count.proved_no_better / count.logs),
            rate(count.believed / count.logs),
            rate_of(count.believed_wrong, count.logs),
            rate(count.believed_no_better / count.logs),
        )


def rate_of(number: int, of: int) -> str:
    """Returns a rate with its interval."""
    interval = binomial_interval(number, of)
    return f"{rate(interval.value)} ({rate(interval.low)} – {rate(interval.high)})"


def verdicts(cells: list[CellSummary], pooled: list[CellSummary]) -> Iterator[str]:
    """Yields for each standing how many cells there are, and which claim too much beyond chance.

    Once for MDPs, once for families: a cell of few repetitions can hardly be refuted alone.
    """
    yield "| standing | counted | cells | repetitions a cell | largest rate | refuted |"
    yield "| --- | --- | ---: | ---: | ---: | --- |"
    for standing in STANDINGS:
        for counted, every in (("each MDP", cells), ("families pooled", pooled)):
            mine = [summary for summary in every if standing in summary.standing]
            if mine:
                often = sorted({summary.repetitions for summary in mine})
                yield row(
                    standing,
                    counted,
                    f"{len(mine):,}",
                    f"{often[0]:,}" if len(often) == 1 else f"{often[0]:,} – {often[-1]:,}",
                    rate(max(summary.violation.value for summary in mine)),
                    named(refuted(every, standing)),
                )
    yield ""
    yield (
        "*Refuted*: the one-sided Clopper–Pearson lower limit of the violation rate, at the level "
        f"{FAMILY_WISE} / (number of cells in the line), exceeds δ."
    )


def named(cells: list[CellSummary]) -> str:
    """Returns how many cells there are, and the first of them by name."""
    if not cells:
        return "none"
    first = "; ".join(
        f"{name_of(summary)}: {rate(summary.violation.value)}" for summary in cells[:NAMED]
    )
    more = f"; and {len(cells) - NAMED} others" if len(cells) > NAMED else ""
    return f"{len(cells)}: {first}{more}"


def worst_rows(families: list[CellSummary]) -> Iterator[str]:
    """Yields a line for each kind of certifier, with the cell in which it is wrong most often."""
    yield "| certifier | standing | cells | largest rate of wrong claims |"
    yield "| --- | --- | ---: | --- |"
    for kind in dict.fromkeys(summary.cell.certifier for summary in families):
        mine = [summary for summary in families if summary.cell.certifier == kind]
        worst = max(mine, key=lambda each: (each.violation.low, -each.cell.episodes))
        words = sorted({word for summary in mine for word in summary.standing})
        yield row(
            kind, " or ".join(words) or "always refused", f"{len(mine):,}",
            f"{share_of(worst)} at {worst.cell.episodes:,}",
        )  # fmt: skip


def overview(cells: list[CellSummary]) -> Iterator[tuple[object, ...]]:
    """Yields a row for each task and certifier: worst cell, and first certified data size."""
    yield (
        "task", "certifier", "standing", "cells", "violation", "violation_low", "violation_high",
        "at_episodes", "gain_certified_from",
    )  # fmt: skip
    first = first_certified(cells)
    names = list(dict.fromkeys((task_name(summary), certifier_name(summary)) for summary in cells))
    for name in names:
        mine = [
            summary for summary in cells if (task_name(summary), certifier_name(summary)) == name
        ]
        worst = max(mine, key=lambda summary: summary.violation.low)
        sizes = [
            first[key] for key in dict.fromkeys(without_size(summary.cell) for summary in mine)
        ]
        standing = next(
            (" or ".join(summary.standing) for summary in mine if summary.standing),
            "always refused",
        )
        yield (
            *name, standing, len(mine), *map(digits, worst.violation), worst.cell.episodes,
            from_size(sizes),
        )  # fmt: skip


def from_size(sizes: list[int | None]) -> str:
    """Returns the first certified size; of several MDPs, how many have one, and the median."""
    reached = sorted(size for size in sizes if size is not None)
    if len(sizes) == 1:
        return f"{reached[0]:,}" if reached else "none of these"
    if not reached:
        return f"none of these, in {len(sizes)} MDPs"
    middle = np.sort([math.inf if size is None else size for size in sizes])[len(sizes) // 2]
    median = "none of these" if math.isinf(middle) else f"{int(middle):,}"
    return f"median {median}; {len(reached)} of {len(sizes)} MDPs at all"


def details(families: list[CellSummary]) -> Iterator[tuple[object, ...]]:
    """Yields a row for each task, certifier and data size, the MDPs of a family pooled."""
    yield (
        "task", "certifier", "episodes", "repetitions", "refused", "violation", "violation_low",
        "violation_high", "positive", "positive_but_worse", "violated_if_positive", "mean_gain",
        "mean_lower", "tightness",
    )  # fmt: skip
    for summary in sorted(
        families,
        key=lambda summary: (task_name(summary), certifier_name(summary), summary.cell.episodes),
    ):
        numbers = (
            summary.refused, *summary.violation, summary.positive.value,
            summary.positive_but_worse, summary.violated_if_positive, summary.mean_gain,
            summary.mean_lower, summary.tightness,
        )  # fmt: skip
        yield (
            task_name(summary), certifier_name(summary), summary.cell.episodes,
            summary.repetitions, *map(digits, numbers),
        )  # fmt: skip


def digits(number: float) -> str:
    """Returns a number with three digits; nothing where there is none."""
    return "" if math.isnan(number) else f"{number:.3g}"


def row(*cells: str) -> str:
    """Returns a line of a table."""
    return f"| {' | '.join(cells)} |"


def name_of(summary: CellSummary) -> str:
    """Returns a cell in words."""
    where = summary.cell.environment or summary.cell.family
    method = task_name(summary).removeprefix(f"{summary.cell.family}: ")
    return f"{where}, {method}, {certifier_name(summary)}, {summary.cell.episodes:,}"


def share_of(summary: CellSummary) -> str:
    """Returns a violation rate with its interval."""
    return rate_of(summary.violations, summary.repetitions)


def rate(share: float) -> str:
    """Returns a share in per cent; a dash where there is none."""
    return "–" if math.isnan(share) else f"{100 * share:.3g} %"


def value(number: float) -> str:
    """Returns a value with three digits; a dash where there is none."""
    return "–" if math.isnan(number) else f"{number:.3g}".replace("-", "−")


def those_run(runs: Path, names: tuple[str, ...]) -> list[Path]:
    return [runs / name for name in names if (runs / name / "table.parquet").exists()]


def write_csv(path: Path, rows: Iterable[Sequence[object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    if "--figures" in sys.argv:
        for path in redraw(DOCS / "coverage"):
            print(f"wrote {path}")
        sys.exit()
    runs = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/coverage")
    for block, names, beside in (("coverage", BENCHMARKS, ()), ("hard", HARD, BROKEN)):
        judged, shown = those_run(runs, names), those_run(runs, beside)
        if judged or shown:
            page, figures = DOCS / "coverage.md", DOCS / "coverage"
            for path in write_coverage_page(page, judged, figures, block=block, beside=shown):
                print(f"wrote {path}")
    counts = verdict_counts(read_verdicts(runs / "verdicts.csv"))
    if counts:
        beside = [count for count in counts if count.family.split(",")[0] in BROKEN_FAMILIES]
        careless = [count for count in counts if count.family in careless_logs.WORLDS]
        judged = [count for count in counts if count not in (*beside, *careless)]
        print(f"wrote {write_verdicts(DOCS / 'coverage.md', judged, beside, DELTA, careless)}")
        write_csv(DOCS / "coverage" / "verdicts" / "counts.csv", [VerdictCount._fields, *counts])

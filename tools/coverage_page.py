"""Makes the tables and figures of docs/coverage.md from the runs of `surestep run coverage`.

Also from that of `python tools/verdicts.py`.

python tools/coverage_page.py [RUNS]   RUNS holds the runs by name, by default runs/coverage

The page has three blocks: the benchmarks of the field, worlds that are hard for claims, and what
stands at the top of results there. A block of which there is no run stays as it is.
"""

import csv
import sys
from pathlib import Path

from surestep.experiments.verdicts import VerdictCount, read_verdicts, verdict_counts
from surestep.report.coverage_page import write_coverage_page, write_verdicts

DOCS = Path(__file__).resolve().parent.parent / "docs"
BENCHMARKS = (
    "gridworld", "wet-chicken", "resource-gathering", "random-mdps", "chosen", "chosen-random",
    "rehearsed", "settings", "trajectories",
)  # fmt: skip
HARD = ("alike", "noisy", "bandit", "adaptive", "icu-sepsis")
BROKEN = ("broken",)  # an assumption does not hold: shown beside
BROKEN_FAMILIES = ("coarse", "hidden-cause")
DELTA = 0.1


def those_run(runs: Path, names: tuple[str, ...]) -> list[Path]:
    return [runs / name for name in names if (runs / name / "table.parquet").exists()]


def write_table(path: Path, counts: list[VerdictCount]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(VerdictCount._fields)
        writer.writerows(counts)


if __name__ == "__main__":
    runs = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/coverage")
    for block, names, beside in (("coverage", BENCHMARKS, ()), ("hard", HARD, BROKEN)):
        judged, shown = those_run(runs, names), those_run(runs, beside)
        if judged or shown:
            page, figures = DOCS / "coverage.md", DOCS / "coverage"
            for path in write_coverage_page(page, judged, figures, block=block, beside=shown):
                print(f"wrote {path}")
    counts = verdict_counts(read_verdicts(runs / "verdicts.csv"))
    if counts:
        beside = [each for each in counts if each.family.split(",")[0] in BROKEN_FAMILIES]
        judged = [each for each in counts if each not in beside]
        print(f"wrote {write_verdicts(DOCS / 'coverage.md', judged, beside, DELTA)}")
        write_table(DOCS / "coverage" / "verdicts" / "counts.csv", counts)

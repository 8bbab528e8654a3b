"""Makes the tables and figures of docs/coverage.md from the runs of `surestep run coverage`.

python tools/coverage_page.py [RUNS]   RUNS holds the runs by name, by default runs/coverage

The page has two blocks: the benchmarks of the field, and worlds that are hard for claims. A block
of which there is no run stays as it is.
"""

import sys
from pathlib import Path

from surestep.report.coverage_page import write_coverage_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
BENCHMARKS = (
    "gridworld", "wet-chicken", "resource-gathering", "random-mdps", "chosen", "chosen-random",
    "rehearsed", "settings", "trajectories",
)  # fmt: skip
HARD = ("alike", "noisy", "bandit", "adaptive", "icu-sepsis")
BROKEN = ("broken",)  # an assumption does not hold: shown beside


def those_run(runs: Path, names: tuple[str, ...]) -> list[Path]:
    return [runs / name for name in names if (runs / name / "table.parquet").exists()]


if __name__ == "__main__":
    runs = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/coverage")
    for block, names, beside in (("coverage", BENCHMARKS, ()), ("hard", HARD, BROKEN)):
        judged, shown = those_run(runs, names), those_run(runs, beside)
        if judged or shown:
            page, figures = DOCS / "coverage.md", DOCS / "coverage"
            for path in write_coverage_page(page, judged, figures, block=block, beside=shown):
                print(f"wrote {path}")

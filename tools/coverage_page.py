"""Makes the tables and figures of docs/coverage.md from the runs of `surestep run coverage`.

python tools/coverage_page.py [RUNS]   RUNS holds the runs by name, by default runs/coverage
"""

import sys
from pathlib import Path

from surestep.report.coverage_page import write_coverage_page

DOCS = Path(__file__).resolve().parent.parent / "docs"
ORDER = (
    "gridworld", "wet-chicken", "resource-gathering", "random-mdps", "chosen", "chosen-random",
    "rehearsed", "settings", "trajectories",
)  # fmt: skip

if __name__ == "__main__":
    runs = Path(sys.argv[1]) if len(sys.argv) > 1 else Path("runs/coverage")
    found = [runs / name for name in ORDER if (runs / name / "table.parquet").exists()]
    for path in write_coverage_page(DOCS / "coverage.md", found, DOCS / "coverage"):
        print(f"wrote {path}")

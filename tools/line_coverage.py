"""Print the share of lines that tests run, by package: `python tools/line_coverage.py FILE`.

FILE is the JSON report of coverage.py that `make line-coverage` makes. Lines of compiled kernels
run as machine code: coverage.py does not see them, and they count as not run.
"""

import json
import sys
from collections import Counter
from pathlib import Path, PurePath


def main() -> int:
    report = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    for line in lines_of(report["files"]):
        print(line)
    print("kernels are compiled, and lines that ran inside them are not counted")
    print("slow tests are left out; line by line: .cache/line-coverage/index.html")
    return 0


def lines_of(files: dict) -> list[str]:
    """Returns a line for each package of src/surestep, and one for all of them."""
    run, all_lines = Counter(), Counter()
    for name, file in files.items():
        inside = PurePath(name).parts[2:]  # below src/surestep
        package = inside[0] if len(inside) > 1 else "."
        for key in (package, "all"):
            run[key] += file["summary"]["covered_lines"]
            all_lines[key] += file["summary"]["num_statements"]
    packages = [*sorted(all_lines.keys() - {"all"}), "all"]
    return [
        f"{package:14} {run[package] / all_lines[package]:6.1%} of {all_lines[package]:6,} lines"
        for package in packages
    ]


if __name__ == "__main__":
    sys.exit(main())

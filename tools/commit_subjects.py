"""Check that commit subjects have at most 72 letters: `python tools/commit_subjects.py RANGE`.

With `--file PATH`, the message in that file is checked: the hook before a commit.
"""

import subprocess
import sys
from pathlib import Path

LONGEST = 72


def main() -> int:
    if len(sys.argv) == 3 and sys.argv[1] == "--file":
        subjects = Path(sys.argv[2]).read_text(encoding="utf-8").splitlines()[:1]
    elif len(sys.argv) == 2:
        command = ["git", "log", "--no-merges", "--format=%s", sys.argv[1]]
        subjects = subprocess.check_output(command, text=True, encoding="utf-8").splitlines()
    else:
        print("usage: python tools/commit_subjects.py RANGE | --file PATH", file=sys.stderr)
        return 2
    long = [subject for subject in subjects if len(subject) > LONGEST]
    for subject in long:
        print(f"{len(subject)} letters, expected at most {LONGEST}: {subject}", file=sys.stderr)
    return 1 if long else 0


if __name__ == "__main__":
    sys.exit(main())

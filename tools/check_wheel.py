"""Build the wheel, install it into an environment of its own, and ask it for its version.

An editable installation sees every file of the clone; this sees what a user gets. The wheel is
built by the locked hatchling in .venv, and the environment's packages are kept between runs.
"""

import shutil
import subprocess
import sys
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from environment import ROOT, VENV, hold_packages, pip

DIST = ROOT / ".cache" / "wheel" / "dist"
CLEAN = ROOT / ".cache" / "wheel" / "environment"


def main() -> int:
    try:
        wheel = build()
        promised = version_in(wheel)
        hold_packages(CLEAN, "demo")
        pip(CLEAN, "install", "--no-deps", "--force-reinstall", str(wheel))
        pip(CLEAN, "check")  # the locked packages are all that the wheel asks for
        answer = output_of(CLEAN / "bin" / "surestep", "--version")
    except subprocess.CalledProcessError as error:
        print(error.stdout, f"wheel check failed: {error}", sep="\n", file=sys.stderr)
        return 1
    if answer.split()[-1:] != [promised]:
        print(f"{wheel.name} promises {promised} but answers {answer!r}", file=sys.stderr)
        return 1
    print(f"{wheel.name} installs into an environment of its own and answers {answer!r}")
    return 0


def build() -> Path:
    shutil.rmtree(DIST, ignore_errors=True)
    python = VENV / "bin" / "python"
    output_of(python, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(DIST))
    (wheel,) = DIST.glob("*.whl")
    return wheel


def version_in(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(metadata).decode("utf-8"))["Version"]


def output_of(program: Path, *arguments: str) -> str:
    return subprocess.run(
        [program, *arguments],
        check=True,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

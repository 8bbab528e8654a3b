"""Build what a release ships, and try it in environments of its own: `python tools/check_wheel.py`.

An editable installation sees every file of the clone; this sees what a user gets. The wheel and the
sdist are built by the locked hatchling in .venv, the wheel once more from the sdist, and installed
beside packages that are kept between runs; it must answer, and nothing else may be asked for. What
an installation weighs, and how long importing takes, is printed.

With --machine-code FOLDER, the wheel also carries the code of kernels that FOLDER has
(`tools/machine_code.py`), and the first `improve` of what is installed must compile nothing.

With --extras, the wheel is installed into an empty environment for every extra of pyproject.toml,
and for none, in locked versions; what each is for is tried, and in the one without extras the first
lines of Python in README.md. The packages for a GPU are resolved, and not installed.
"""

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import venv
from email.parser import HeaderParser
from pathlib import Path
from zipfile import ZipFile

from environment import ROOT, VENV, hold_packages, lock_of, pip

PLACE = ROOT / ".cache" / "wheel"
CLEAN = PLACE / "environment"
CORE = "without extras"
README = """
import doctest
text = open("README.md", encoding="utf-8").read().split("```python\\n")[1].split("```")[0]
test = doctest.DocTestParser().get_doctest(text, {}, "README.md", "README.md", 0)
assert test.examples and doctest.DocTestRunner().run(test).failed == 0
"""
TRIES = {  # what an extra is for, in a line or two
    CORE: README,
    "cluster": "import ray",
    "icu": "from surestep.environments import make\nassert make('icu-sepsis').num_states > 700",
    "plots": "from pathlib import Path\nfrom surestep._drawing import drawing, rendered\n"
    "with drawing(3, 2) as figure:\n"
    "    assert rendered(figure, 'png').startswith(b'\\x89PNG')",
    "rl": "import gymnasium\nfrom surestep.io import from_gymnasium\n"
    "assert from_gymnasium(gymnasium.make('FrozenLake-v1'), 0.9).num_states == 16",
    "states": "import sklearn",
    "storm": "import stormpy",
    "warehouse": "import sqlglot\nassert sqlglot.transpile('SELECT 1', write='postgres')",
}
RESOLVED = "gpu"  # gigabytes, and of no use without one


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--extras", action="store_true", help="try every extra by itself too")
    parser.add_argument("--machine-code", type=Path, help="carry the code of kernels in it too")
    asked = parser.parse_args()
    try:
        wheel = build()
        if asked.machine_code:
            wheel = with_machine_code(wheel, asked.machine_code)
        check_answer(wheel)
        if asked.machine_code:
            check_nothing_is_compiled()
        if asked.extras:
            check_extras(wheel)
    except subprocess.CalledProcessError as error:
        print(error.stdout, f"wheel check failed: {error}", sep="\n", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"wheel check failed: {error}", file=sys.stderr)
        return 1
    return 0


# ---- what is built -----------------------------------------------------------------------------


def build() -> Path:
    """Returns the wheel; the sdist beside it must make the same one."""
    shutil.rmtree(PLACE / "dist", ignore_errors=True)
    hatch(ROOT, "--target", "wheel", "--target", "sdist", "--directory", str(PLACE / "dist"))
    (wheel,) = (PLACE / "dist").glob("*.whl")
    (sdist,) = (PLACE / "dist").glob("*.tar.gz")
    if not wheel.name.endswith("-py3-none-any.whl"):
        raise ValueError(f"{wheel.name} is not for every machine")
    again = from_sdist(sdist)
    if contents(again) != contents(wheel):
        different = contents(again).items() ^ contents(wheel).items()
        raise ValueError(f"the sdist makes another wheel: {sorted(name for name, _ in different)}")
    return wheel


def from_sdist(sdist: Path) -> Path:
    """Returns the wheel that is made from the sdist alone."""
    unpacked = PLACE / "unpacked"
    shutil.rmtree(unpacked, ignore_errors=True)
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (sources,) = unpacked.iterdir()
    hatch(sources, "--target", "wheel", "--directory", str(unpacked))
    (wheel,) = unpacked.glob("*.whl")
    return wheel


def with_machine_code(wheel: Path, folder: Path) -> Path:
    """Makes the wheel once more, of the sources in the sdist and the code of kernels."""
    (sources,) = (PLACE / "unpacked").glob("*/")
    shutil.copytree(folder, sources / "src" / "surestep" / "kernels" / "machine_code")
    plain = len(contents(wheel))
    hatch(sources, "--target", "wheel", "--directory", str(wheel.parent))
    carried = len(contents(wheel)) - plain
    if carried != len([*folder.iterdir()]):
        raise ValueError(f"{wheel.name} carries {carried} files of {folder}")
    print(f"{wheel.name} carries {carried} files of machine code, {wheel.stat().st_size:,} bytes")
    return wheel


def hatch(sources: Path, *arguments: str) -> None:
    output_of(VENV / "bin" / "python", "-m", "hatchling", "build", *arguments, folder=sources)


def contents(wheel: Path) -> dict[str, str]:
    with ZipFile(wheel) as archive:
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist()}


def version_in(wheel: Path) -> str:
    with ZipFile(wheel) as archive:
        (metadata,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return HeaderParser().parsestr(archive.read(metadata).decode("utf-8"))["Version"]


# ---- what it answers ---------------------------------------------------------------------------


def check_answer(wheel: Path) -> None:
    """Installs the wheel beside the packages of the demo, and asks it for its version."""
    hold_packages(CLEAN, "demo")
    pip(CLEAN, "install", "--no-deps", "--force-reinstall", str(wheel))
    pip(CLEAN, "check")  # the locked packages are all that the wheel asks for
    answer = output_of(CLEAN / "bin" / "surestep", "--version")
    if answer.split()[-1:] != [version_in(wheel)]:
        raise ValueError(f"{wheel.name} promises {version_in(wheel)} but answers {answer!r}")
    print(f"{wheel.name} installs into an environment of its own and answers {answer!r}")
    print(
        f"surestep itself {megabytes(CLEAN, 'surestep'):.1f} MB; import surestep "
        f"{seconds(CLEAN, 'import surestep') * 1e3:.0f} ms, surestep --help "
        f"{seconds(CLEAN, HELP) * 1e3:.0f} ms beyond an empty program"
    )


def check_nothing_is_compiled() -> None:
    """Improves the example with what is installed; Numba's cache of the user must stay empty."""
    kept = PLACE / "numba"
    for folder in (kept, PLACE / "demo"):
        shutil.rmtree(folder, ignore_errors=True)
    example = ROOT / "examples" / "pumps.toml"
    said = output_of(
        *(CLEAN / "bin" / "surestep", "improve", str(example), "-o", str(PLACE / "demo")),
        environment={"NUMBA_CACHE_DIR": str(kept)},
    )
    if compiled := sorted(path.name for path in kept.rglob("*.nbc")):
        raise ValueError(f"the first `improve` compiles {len(compiled)}: {', '.join(compiled)}")
    if "compiling" in said:
        raise ValueError(f"the first `improve` says that it compiles: {said}")
    print("the first `improve` of what is installed compiles nothing")


HELP = """
import contextlib, io
from surestep.cli.main import main
with contextlib.redirect_stdout(io.StringIO()):
    main(['--help'], standalone_mode=False)
"""


def megabytes(environment: Path, package: str = "") -> float:
    """Returns what an installation weighs, or one package of it; byte code is not counted."""
    (packages,) = environment.glob("lib/python*/site-packages")
    files = (packages / package).rglob("*")
    return sum(f.stat().st_size for f in files if f.is_file() and f.suffix != ".pyc") / 1e6


def seconds(environment: Path, code: str) -> float:
    """Returns how much longer a program takes than one that does nothing, each at its best."""
    return best_of_three(environment, code) - best_of_three(environment, "pass")


def best_of_three(environment: Path, code: str) -> float:
    taken = []
    for _ in range(3):
        begin = time.perf_counter()
        output_of(environment / "bin" / "python", "-c", code)
        taken.append(time.perf_counter() - begin)
    return min(taken)


# ---- each extra by itself ----------------------------------------------------------------------


def check_extras(wheel: Path) -> None:
    """Installs each extra into an empty environment, and tries what it is for."""
    pins = PLACE / "pins.txt"
    pins.write_text(pinned(lock_of("cluster")), encoding="utf-8")
    for extra, code in TRIES.items():
        environment = PLACE / "extra"
        venv.create(environment, clear=True, symlinks=True, with_pip=False)
        wanted = str(wheel) if extra == CORE else f"{wheel}[{extra}]"
        # icu-sepsis asks for gym, of which there is no wheel.
        arguments = ("--no-compile", "--only-binary", ":all:", "--no-binary", "gym")
        pip(environment, "install", *arguments, "--constraint", str(pins), wanted)
        pip(environment, "check")
        output_of(environment / "bin" / "python", "-c", code.replace("FOLDER", str(PLACE)))
        print(f"{extra}: {megabytes(environment):.0f} MB, and does what it is for", flush=True)
    pip(environment, "install", "--dry-run", "--only-binary", ":all:", f"{wheel}[{RESOLVED}]")
    print(f"{RESOLVED}: can be resolved")


def pinned(lock: Path) -> str:
    """Returns the versions of a lock without the digests, which pip would ask of the wheel too."""
    lines = lock.read_text(encoding="utf-8").splitlines()
    return "\n".join(re.sub(r"\s*\\$", "", line) for line in lines if re.match(r"\w", line)) + "\n"


def output_of(
    program: Path,
    *arguments: str,
    folder: Path = ROOT,
    environment: "dict[str, str] | None" = None,
) -> str:
    return subprocess.run(
        [program, *arguments],
        env={**os.environ, **(environment or {})},
        check=True,
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout.strip()


if __name__ == "__main__":
    sys.exit(main())

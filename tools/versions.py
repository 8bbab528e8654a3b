"""Try every verb with the oldest and the newest packages: `python tools/versions.py [NAME ...]`.

For each interpreter that is found here (python3.11 to python3.14) two clean environments are made
in .cache/versions: one with the oldest packages that pyproject.toml allows and that have a wheel
for it, one with the newest. The wheel is installed into both, and every verb of the command line
must work on a small log. Names such as `python3.12-oldest` choose some of the environments. The
tool needs .venv, and the uv of `make lock`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path

import check_wheel
from environment import ROOT, interpreters

PLACE = ROOT / ".cache" / "versions"
UV = ROOT / ".cache" / "lock" / "bin" / "uv"
RESOLUTIONS = {"oldest": "lowest-direct", "newest": "highest"}
EXTRAS = ("plots", "rl", "states", "warehouse")  # those whose packages have wheels for every system
PUMPS = 200  # episodes of the example log
EXPERIMENT = """\
title = "Does it run?"
seed = 1
repetitions = 2
episodes = [10]

[[environments]]
name = "gridworld"

[[algorithms]]
name = "spibb"
n_wedge = [5, 10]
"""
COMMANDS = """\
describe pumps.csv -o described.toml
inspect pumps.toml
improve pumps.toml --worlds 0 -o result
verify result pumps.toml
explain result --state worn --state high
certify result pumps.toml --kind robust
pilot result --episodes 50
watch result pumps.csv
rehearse pumps.toml --kind posterior --worlds 9 --sizes 1 -o rehearsal
algorithms
bound --states 25 --actions 4 --discount 0.95 --value-bound 1 --visits 100
count pumps.toml -o counts.parquet
merge counts.parquet -o merged.parquet
run small.toml -o run --workers 1
figure small.toml --from run -o run.png
compare small.toml --from run
"""


def main() -> int:
    known = {f"{name}-{age}": (name, age) for name, age in product(interpreters(), RESOLUTIONS)}
    wanted = sys.argv[1:] or list(known)
    if unknown := set(wanted) - set(known):
        print(f"{sorted(unknown)} is not here, expected some of {list(known)}", file=sys.stderr)
        return 2
    wheel = check_wheel.build()
    failed = [name for name in wanted if not works(name, *known[name], wheel)]
    if failed:
        print(f"test-versions failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def works(name: str, interpreter: str, age: str, wheel: Path) -> bool:
    """Makes one environment, tries all commands in it, and prints a line that says how it went."""
    environment = PLACE / name
    shutil.rmtree(environment, ignore_errors=True)
    try:
        install(environment, interpreters()[interpreter], RESOLUTIONS[age], wheel)
        folder = log_folder(environment / "log")
        for command in COMMANDS.splitlines():
            answered(environment / "bin" / "surestep", *shlex.split(command), folder=folder)
        for extra in EXTRAS:
            code = check_wheel.TRIES[extra].replace("FOLDER", str(folder))
            answered(environment / "bin" / "python", "-c", code, folder=folder)
    except subprocess.CalledProcessError as error:
        command = shlex.join([Path(error.cmd[0]).name, *map(str, error.cmd[1:])])
        print(f"{name}: FAILED with {error.returncode}: {command}\n{error.stdout}", flush=True)
        return False
    frozen = answered(UV, "pip", "freeze", "--python", environment, folder=ROOT)
    shown = " ".join(re.findall(r"^(?:numpy|scipy|numba|duckdb|msgspec)==.+", frozen, re.MULTILINE))
    print(f"{name}: {len(COMMANDS.splitlines())} verbs work with {shown}", flush=True)
    return True


def install(environment: Path, interpreter: str, resolution: str, wheel: Path) -> None:
    """Makes an environment with the packages that pyproject.toml asks for, and the wheel."""
    answered(UV, "venv", "--no-config", "--python", interpreter, environment, folder=ROOT)
    pip = (UV, "pip", "install", "--no-config", "--system-certs", "--python", environment)
    extras = [f"--extra={extra}" for extra in EXTRAS]
    asked = ("--only-binary", ":all:", "--requirement", "pyproject.toml", *extras)
    answered(*pip, "--resolution", resolution, *asked, folder=ROOT)
    answered(*pip, "--no-deps", wheel, folder=ROOT)


def log_folder(folder: Path) -> Path:
    """Makes a folder with the first pumps of the example log, and with a small experiment."""
    folder.mkdir()
    for name in ("pumps.toml", "pumps_policy.csv"):
        shutil.copy(ROOT / "examples" / name, folder)
    log = (ROOT / "examples" / "pumps.csv").read_text(encoding="utf-8")
    header, *rows = log.splitlines(keepends=True)
    first = [row for row in rows if int(row.partition(",")[0]) <= PUMPS]
    (folder / "pumps.csv").write_text("".join([header, *first]), encoding="utf-8")
    (folder / "small.toml").write_text(EXPERIMENT, encoding="utf-8")
    return folder


def answered(program: Path, *arguments: object, folder: Path) -> str:
    """Runs a program with compiled kernels of its own, and returns what it prints."""
    return subprocess.run(
        [program, *arguments],
        check=True,
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(program.parent.parent / "numba")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ).stdout


if __name__ == "__main__":
    sys.exit(main())

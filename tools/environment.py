"""Make .venv what the lock says: `python tools/environment.py demo|test|cluster [FOLDER]`.

A stamp inside an environment records what its packages were made from: the lock, the interpreter
and the folder of the clone. While that still holds there is nothing to do; otherwise the
environment is made from scratch, except that the small set grows into the large one. A stamp goes
first and comes back last, so an interrupted set-up is never taken for a complete one.

Only old-fashioned syntax here: Python 3.6 must get as far as the message that it is too old.
"""

import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
UV = ROOT / ".cache" / "lock" / "bin" / "uv"
INTERPRETERS = ("python3.11", "python3.12", "python3.13", "python3.14")
SETS = ("demo", "test", "cluster")  # each contains the ones before it, in the same versions


class Origin(NamedTuple):
    """What the packages of an environment were made from."""

    packages: str = ""  # the name of the set
    lock: str = ""
    interpreter: str = ""
    clone: str = ""


def main() -> int:
    if len(sys.argv) not in (2, 3) or sys.argv[1] not in SETS:
        return refuse("usage: python tools/environment.py {} [FOLDER]".format("|".join(SETS)))
    environment = Path(sys.argv[2]).resolve() if len(sys.argv) == 3 else VENV
    if sys.version_info < (3, 11):  # noqa: UP036
        return refuse(
            "surestep needs Python 3.11 or newer and {} is {}.{}; choose another with "
            "`make PYTHON=...`".format(sys.executable, *sys.version_info[:2])
        )
    if importlib.util.find_spec("pip") is None:
        return refuse(
            f"{sys.executable} has no pip to install packages with; install it (on Debian: "
            "apt install python3-pip) or choose another Python with `make PYTHON=...`"
        )
    try:
        hold_packages(environment, sys.argv[1])
        hold_project(environment)
    except subprocess.CalledProcessError as error:
        print(error.stdout, f"pip failed; {environment} is not complete", sep="\n", file=sys.stderr)
        return 1
    return 0


def hold_packages(environment: Path, wanted: str) -> None:
    """Brings an environment to the wanted set, unless it already holds that or a larger one."""
    stamp = environment / "packages.json"
    found = recorded_origin(stamp)
    usable = found.packages in SETS and found == current_origin(found.packages)
    if usable and SETS.index(found.packages) >= SETS.index(wanted):
        return

    name = environment.relative_to(ROOT)
    print(f"Setting up {name} with the packages of requirements/{wanted}.txt", flush=True)
    if stamp.exists():
        stamp.unlink()
    if not usable:
        venv.create(environment, clear=True, symlinks=True, with_pip=False)
    # The lock is complete, but for what requirements/overrides.txt leaves out: hence --no-deps.
    # Byte code comes with the first import, which halves the wait.
    locked = ("--require-hashes", "--requirement", str(lock_of(wanted)))
    install(environment, "--no-deps", "--only-binary", ":all:", *locked)  # nothing is built
    stamp.write_text(json.dumps(current_origin(wanted)._asdict(), indent=2), encoding="utf-8")


def hold_project(environment: Path) -> None:
    """Installs this project editable, again whenever pyproject.toml changes."""
    stamp = environment / "project.sha256"
    current = digest(ROOT / "pyproject.toml")
    if stamp.exists() and stamp.read_text(encoding="utf-8") == current:
        return
    if stamp.exists():
        stamp.unlink()
    install(environment, "--no-deps", "--no-build-isolation", "--editable", str(ROOT))
    stamp.write_text(current, encoding="utf-8")


def install(environment: Path, *arguments: str) -> None:
    """Installs into an environment by uv, in a sixth of pip's time, or by pip where uv fails.

    That is where no uv is made for this machine, and where packages come from an index that only
    the settings of pip name.
    """
    python = str(environment / "bin" / "python")
    try:
        hold_uv()
        run(
            *(str(UV), "pip", "install", "--quiet", "--no-config", "--system-certs"),
            *("--python", python, *arguments),
        )
    except (subprocess.CalledProcessError, OSError):
        pip(environment, "install", "--no-compile", *arguments)


def hold_uv() -> None:
    """Installs the locked uv, by pip, unless it is there."""
    lock = ROOT / "requirements" / "uv.txt"
    stamp = UV.parent.parent / "uv.sha256"
    if not (stamp.exists() and stamp.read_text(encoding="utf-8") == digest(lock)):
        shutil.rmtree(str(stamp.parent), ignore_errors=True)
        target = ("--target", str(stamp.parent), "--no-deps", "--no-compile")
        run(
            *(sys.executable, "-m", "pip", "install", *target, "--only-binary", ":all:"),
            *("--require-hashes", "--requirement", str(lock)),
        )
        stamp.write_text(digest(lock), encoding="utf-8")


def pip(environment: Path, *arguments: str) -> None:
    """Runs this interpreter's pip on an environment, which needs no pip (nor ensurepip) itself."""
    run(sys.executable, "-m", "pip", "--python", str(environment / "bin" / "python"), *arguments)


def run(*command: str) -> None:
    quiet = {"PIP_PROGRESS_BAR": "off", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(
        command,
        check=True,
        env={"UV_CACHE_DIR": str(ROOT / ".cache" / "uv"), **os.environ, **quiet},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def interpreters() -> "dict[str, str]":
    """Maps each interpreter that runs on this machine to its path, those of pyenv too."""
    pyenv = Path(os.environ.get("PYENV_ROOT", str(Path.home() / ".pyenv")))
    found = {}
    for name in INTERPRETERS:
        on_path = shutil.which(name)  # a shim of pyenv is there even if nothing is behind it
        of_pyenv = sorted(map(str, pyenv.glob(f"versions/*/bin/{name}")))
        for path in [on_path, *of_pyenv] if on_path else of_pyenv:
            if (
                name not in found
                and subprocess.call([path, "-c", ""], stderr=subprocess.DEVNULL) == 0
            ):
                found[name] = path
    return found


def current_origin(packages: str) -> Origin:
    interpreter = (os.path.realpath(sys.executable), sys.version, sysconfig.get_platform())
    return Origin(packages, digest(lock_of(packages)), " ".join(interpreter), str(ROOT))


def recorded_origin(stamp: Path) -> Origin:
    try:
        return Origin(**json.loads(stamp.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):  # absent, cut short, or of another form
        return Origin()


def lock_of(packages: str) -> Path:
    return ROOT / "requirements" / f"{packages}.txt"


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def refuse(message: str) -> int:
    print(message, file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())

"""Tests on a machine with a GPU: its answers against the processor's, the contracts, and the times.

Such machines are often offline: nothing is installed, the interpreter that runs this does it all,
and what it lacks is named. Run: make test-gpu
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
NEEDED = [
    "numpy",
    "scipy",
    "numba",
    "numba_cuda",
    "cupy",
    "msgspec",
    "click",
    "rich",
    "duckdb",
    "pytest",
    "hypothesis",
    "xdist",
]  # as modules
SUITES = (
    "tests/contract",
    "tests/planning/test_batch.py",
    "tests/certificates/test_posterior.py",
    "tests/certificates/test_posterior_draws.py",
    "tests/certificates/test_posterior_promise.py",
)


def main() -> int:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        print(f"{sys.executable} lacks: {', '.join(missing)}. Nothing was installed, or tested.")
        return 2
    found = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=False)
    print(found.stdout.strip() or "nvidia-smi names no GPU")
    sources = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    path = os.pathsep.join(filter(None, [sources, os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "SURESTEP_TEST_GPU": "1"}
    commands = [
        [sys.executable, "-m", "pytest", "-q", "tests/gpu"],
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-m",
            "not slow",
            "-n",
            "8",
            "-p",
            "no:benchmark",
            *SUITES,
        ],
        [sys.executable, "benchmarks/gpu.py", *sys.argv[1:]],
    ]
    devices = ("auto", "cuda", "auto")
    for command, device in zip(commands, devices, strict=True):
        print("$", f"SURESTEP_DEVICE={device}", " ".join(command[1:]), flush=True)
        code = subprocess.run(
            command, cwd=ROOT, env={**environment, "SURESTEP_DEVICE": device}, check=False
        ).returncode
        if code != 0:
            return code
    return 0


if __name__ == "__main__":
    sys.exit(main())

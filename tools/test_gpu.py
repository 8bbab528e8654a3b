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
SUITES = (  # with all their work on the GPU
    "tests/contract",
    "tests/planning/test_batch.py",
    "tests/certificates/test_posterior.py",
    "tests/certificates/test_posterior_draws.py",
    "tests/certificates/test_posterior_promise.py",
)


def files_for_gpus() -> list[str]:
    """Returns the files with tests that need a GPU; others may need packages that are not there."""
    files = (ROOT / "tests").rglob("test_*.py")
    return sorted(str(file) for file in files if "mark.gpu" in file.read_text(encoding="utf-8"))


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
    pytest = ["-m", "pytest", "-q", "-p", "no:benchmark", "-m"]
    commands = (
        ("auto", *pytest, "gpu", *files_for_gpus()),
        ("cuda", *pytest, "not slow and not gpu", "-n", "8", *SUITES),
        ("auto", "benchmarks/gpu.py", *sys.argv[1:]),
    )
    for device, *command in commands:
        print("$", f"SURESTEP_DEVICE={device}", *command, flush=True)
        environment["SURESTEP_DEVICE"] = device
        done = subprocess.run([sys.executable, *command], cwd=ROOT, env=environment, check=False)
        if done.returncode != 0:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main())

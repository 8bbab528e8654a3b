"""Run the tests of numbers as other machines would: `python tools/machines.py [NAME ...]`.

NumPy, BLAS and the kernels choose their instructions by the processor, so their last bits differ
from machine to machine, and so do sums with the number of threads. No test may rest on them. Each
machine below is this one with less switched on; other interpreters are tried where they are found.
"""

import os
import subprocess
import sys

from numpy._core._multiarray_umath import __cpu_dispatch__ as dispatched

from environment import ROOT, VENV, interpreters

NUMBERS = (
    "model", "kernels", "bounds", "planning", "transforms", "offpolicy", "certificates",
    "algorithms", "contract", "rehearsal", "paper",
)  # fmt: skip
THREADS = ("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
WIDE = [name for name in dispatched if "512" in name or name == "X86_V4"]
MACHINES = {
    "without-avx512": {
        "NPY_DISABLE_CPU_FEATURES": " ".join(WIDE),
        "OPENBLAS_CORETYPE": "Haswell",
        "NUMBA_CPU_NAME": "haswell",
    },
    "oldest": {  # neither AVX nor fused multiplication and addition
        "NPY_DISABLE_CPU_FEATURES": " ".join(dispatched),
        "OPENBLAS_CORETYPE": "Prescott",
        "NUMBA_CPU_NAME": "generic",
    },
    "one-thread": dict.fromkeys(THREADS, "1"),
    "four-threads": dict.fromkeys(THREADS, "4"),
}


def main() -> int:
    others = [name for name in interpreters() if name != f"python3.{sys.version_info.minor}"]
    known = [*MACHINES, *others]
    wanted = sys.argv[1:] or known
    if unknown := set(wanted) - set(known):
        print(f"{sorted(unknown)} is not here, expected some of {known}", file=sys.stderr)
        return 2
    failed = [name for name in wanted if not passes(name)]
    for name in wanted:
        print(f"{name}: {'FAILED' if name in failed else 'passed'}")
    return 1 if failed else 0


def passes(name: str) -> bool:
    """Whether the tests of numbers pass on that machine, or with that interpreter."""
    print(f"\n==== {name}", flush=True)
    environment = VENV
    if name not in MACHINES:
        environment = ROOT / ".cache" / "machines" / name
        hold = [interpreters()[name], ROOT / "tools" / "environment.py", "test", environment]
        if subprocess.run(hold, check=False).returncode != 0:
            return False
    tests = [ROOT / "tests" / folder for folder in NUMBERS]
    command = [environment / "bin" / "pytest", "-n", "2", "-q", "-m", "not slow"]
    variables = {key: value for key, value in os.environ.items() if key not in THREADS}
    return (
        subprocess.run(
            [*command, *tests],
            cwd=ROOT,
            env={**variables, **MACHINES.get(name, {})},
            check=False,
        ).returncode
        == 0
    )


if __name__ == "__main__":
    sys.exit(main())

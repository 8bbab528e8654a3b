"""How long each kernel takes to compile from nothing, and all of them together.

Run: .venv/bin/python benchmarks/compilation.py [--only backup.best_values ...]
"""

import argparse
import importlib
import pkgutil
import time

import numba

import surestep.kernels
from surestep.kernels._compile import Kernel, Tasks
from surestep.kernels.types import signature_of

# The arguments of the quickest run; `make test` needs --keep, and does not look whether it works.
SMALLEST = ("--keep", "--only", "runs.running_sums")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="kernels as file.name, by default all")
    parser.add_argument("--keep", action="store_true", help="keep the machine code, as runs do")
    given = parser.parse_args()
    kernels: dict[str, Kernel] = {}
    for module in pkgutil.iter_modules(surestep.kernels.__path__):
        if module.name != "_cuda":  # which needs an extra, and has no kernels
            members = vars(importlib.import_module(f"surestep.kernels.{module.name}"))
            own = (each for each in members.values() if isinstance(each, Kernel))
            kernels |= {
                f"{each.function.__module__}.{each.function.__name__}": each for each in own
            }
    total = 0.0
    for name, kernel in kernels.items():
        short = name.removeprefix("surestep.kernels.")
        if given.only and short not in given.only:
            continue
        once = isinstance(kernel, Tasks) or kernel.threads_from is None
        for parallel in (False,) if once else (False, True):
            begin = time.process_time()
            if given.keep:
                kernel.code(parallel)
            else:  # in memory: what is on disk does not help
                dispatcher = numba.njit(parallel=parallel, nogil=True, no_cfunc_wrapper=True)(
                    kernel.function
                )
                dispatcher.compile(signature_of(kernel.function))
            seconds = time.process_time() - begin
            total += seconds
            threads = "all threads" if parallel else "one thread"
            print(f"{seconds:6.2f} s  {short}, {threads}")
    print(f"{total:6.2f} s  together, of {len(kernels)} kernels")


if __name__ == "__main__":
    main()

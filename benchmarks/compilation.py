"""How many CPU seconds each kernel takes to compile from nothing, and all of them together.

Run: .venv/bin/python benchmarks/compilation.py [--only backup.best_values ...]
"""

import argparse
import time

import numba

from surestep.kernels._compile import Tasks, uncollected
from surestep.kernels.ahead import all_kernels, kernel_of
from surestep.kernels.types import signature_of

# The arguments of the quickest run; `make test` needs --keep, and does not look whether it works.
SMALLEST = ("--keep", "--only", "runs.running_sums")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", help="kernels as file.name, by default all")
    parser.add_argument("--keep", action="store_true", help="keep the machine code, as runs do")
    given = parser.parse_args()
    total, names = 0.0, given.only or all_kernels()
    for name in names:
        kernel = kernel_of(name)
        once = isinstance(kernel, Tasks) or kernel.threads_from is None
        for parallel in (False,) if once else (False, True):
            begin = time.process_time()
            if given.keep:
                kernel.code(parallel)
            else:  # in memory: what is on disk does not help
                dispatcher = numba.njit(parallel=parallel, nogil=True, no_cfunc_wrapper=True)(
                    kernel.function
                )
                with uncollected():
                    dispatcher.compile(signature_of(kernel.function))
            seconds = time.process_time() - begin
            total += seconds
            threads = "all threads" if parallel else "one thread"
            print(f"{seconds:6.2f} s  {name}, {threads}")
    print(f"{total:6.2f} s  together, of {len(names)} kernels")


if __name__ == "__main__":
    main()

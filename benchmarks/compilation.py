"""How long each kernel takes to compile from nothing, and all of them together.

Run: .venv/bin/python benchmarks/compilation.py
"""

import importlib
import pkgutil
import time

import surestep.kernels
from surestep.kernels._compile import ALL_KERNELS


def main() -> None:
    for module in pkgutil.iter_modules(surestep.kernels.__path__, "surestep.kernels."):
        importlib.import_module(module.name)
    total = 0.0
    for name, kernel in ALL_KERNELS.items():
        for parallel in (False, True) if kernel.threads_from is not None else (False,):
            begin = time.perf_counter()
            kernel.compile(parallel, None)  # in memory: what is on disk does not help
            seconds = time.perf_counter() - begin
            total += seconds
            threads = "all threads" if parallel else "one thread"
            print(f"{seconds:6.2f} s  {name.removeprefix('surestep.kernels.')}, {threads}")
    print(f"{total:6.2f} s  all {len(ALL_KERNELS)} kernels (the house allows 60 s)")


if __name__ == "__main__":
    main()

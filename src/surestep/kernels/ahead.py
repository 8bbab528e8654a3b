"""Compiles the kernels of a verb before it needs them, by one process a core.

Numba compiles in one thread at a time, so the work is done by processes. Each takes the next kernel
of the list, and leaves its code in the cache, where this process finds it. A kernel that is called
while it is being compiled waits for that (`Kernel.ready`).
"""

import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from pkgutil import iter_modules
from queue import Empty, SimpleQueue
from subprocess import DEVNULL, PIPE, Popen
from threading import Event, Thread

from surestep import kernels
from surestep.kernels._compile import Kernel

SECONDS = 2.5  # to compile a kernel, about (`benchmarks/compilation.py`)
# The kernels that a task needs, in the order of need.
NEEDED = {
    "improve": (  # the usual log; also to verify and to rehearse that
        "backup.expected_values",
        "backup.chain_step",
        "backup.pair_values",
        "spibb.move_free_mass",
        "components.leads_ahead",
        "components.strong_components",
        "robust.worst_interval_rows",
        "stitched.coupled_chances",
        "stitched.stitched_rounds",
        "runs.discounted_returns",
        "stitched.last_refuted_of",
        "posterior.draw_models",
        "drawn.solve_drawn",
        "components.settle_components",
        "backup.best_values",
        "robust_batch.settle_intervals",
        "shuffles.shuffled_information",
        "shuffles.walk_trails",
        "runs.running_sums",
        "runs.simulate",
        "elimination.evaluate_each",
        "elimination.improve_each",
    ),
    "improve by a structure": (
        "nodes.node_rounds",
        "robust.worst_interval_rows",
        "backup.expected_values",
        "backup.chain_step",
        "components.leads_ahead",
        "components.strong_components",
        "components.settle_components",
        "stitched.last_refuted_of",
    ),
}


def compile_ahead(names: Sequence[str]) -> str:
    """Begins to compile the kernels that have no stored code; returns what to tell of it, if any.

    Kernels are named file.name, in the order in which they are needed.
    """
    missing = [name for name in names if not kernel_of(name).is_kept()]
    processes = min(os.cpu_count() or 1, len(missing))
    if processes < 2 or not sys.executable:
        return ""
    waiting: SimpleQueue[tuple[str, Event]] = SimpleQueue()
    for name in missing:
        kernel_of(name).ready = ready = Event()
        waiting.put((name, ready))
    for _ in range(processes):
        Thread(target=hand_out, args=(waiting,), daemon=True).start()
    seconds = SECONDS * len(missing) / processes
    return f"compiling for this machine, once: about {seconds:.0f} s"


def hand_out(waiting: "SimpleQueue[tuple[str, Event]]") -> None:
    """Has kernels compiled by a process of its own, one after the other, until none waits.

    What a process leaves that cannot begin, or ends early, is compiled by whoever calls it.
    """
    command = [sys.executable, "-c", "from surestep.kernels.ahead import serve; serve()"]
    with (
        suppress(Empty, OSError),
        Popen(command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, text=True) as process,
    ):
        assert process.stdin is not None
        assert process.stdout is not None
        while True:
            name, ready = waiting.get_nowait()
            try:
                print(name, file=process.stdin, flush=True)
                process.stdout.readline()
            finally:
                ready.set()
    with suppress(Empty):
        while True:
            waiting.get_nowait()[1].set()


def serve() -> None:
    """Compiles each kernel that is named on standard input, and answers when its code is kept."""
    for line in sys.stdin:
        kernel_of(line.strip()).code(False)
        sys.stdout.write(line)
        sys.stdout.flush()


def kernel_of(name: str) -> Kernel[..., object]:
    """Returns a kernel by its name, file.name."""
    file, _, function = name.partition(".")
    kernel: Kernel[..., object] = getattr(import_module(f"surestep.kernels.{file}"), function)
    return kernel


def all_kernels() -> list[str]:
    """Returns the names of all kernels for the processor."""
    names = []
    for module in iter_modules(kernels.__path__, "surestep.kernels."):
        if not module.name.endswith("_cuda"):  # which needs an extra
            for name, one in vars(import_module(module.name)).items():
                if isinstance(one, Kernel) and one.function.__module__ == module.name:
                    names.append(f"{module.name.removeprefix('surestep.kernels.')}.{name}")
    return names

"""One map over tasks: in this process, in worker processes, or on a Ray cluster.

Workers are spawned, never forked: a fork copies the threads' locks of compiled kernels but not the
threads, and hangs.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar

from surestep.errors import InvalidParameter, MissingExtra

Task = TypeVar("Task")
Result = TypeVar("Result")


def map_in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int = 1
) -> Iterator[Result]:
    """`function(task)` for each task, in the order of the tasks, as they get done.

    With more than one worker, function and tasks are pickled: the function must be importable.
    The first error of a task is raised, and the tasks not yet begun are dropped.
    """
    if workers < 1:
        raise InvalidParameter(f"workers is {workers}, expected 1 or more")
    if workers == 1:
        return (function(task) for task in tasks)
    return in_workers(function, tasks, workers)


def available_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_on_ray(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, address: str | None = None
) -> Iterator[Result]:
    """The map as tasks on a Ray cluster, in the order of the tasks.

    `address` is an existing cluster; without one, Ray starts on this machine.
    """
    try:
        import ray
    except ImportError:
        raise MissingExtra(
            "running on a cluster needs Ray, which is not installed; install it with: "
            "pip install 'surestep[cluster]'"
        ) from None
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, include_dashboard=False)
    on_worker = ray.remote(num_cpus=1, max_retries=3)(on_one_thread)
    waiting = [on_worker.remote(function, task) for task in tasks]
    try:
        for answer in waiting:
            yield ray.get(answer)
    finally:
        for answer in waiting:
            ray.cancel(answer, force=False)


def on_one_thread(function: Callable[[Task], Result], task: Task) -> Result:
    """`function(task)`, with kernels on one thread."""
    use_one_thread()
    return function(task)


def in_workers(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Iterator[Result]:
    """The map in spawned processes, each of which runs kernels on one thread."""
    context = multiprocessing.get_context("spawn")
    executor = ProcessPoolExecutor(workers, mp_context=context, initializer=use_one_thread)
    try:
        yield from executor.map(function, tasks)
    finally:
        executor.shutdown(cancel_futures=True)


def use_one_thread() -> None:
    """Keeps the kernels of a worker to one thread: the workers are what uses the cores.

    A worker has imported Numba already if the caller's main module does; then it is asked itself.
    """
    if "numba" in sys.modules:
        sys.modules["numba"].set_num_threads(1)
    else:
        os.environ["NUMBA_NUM_THREADS"] = "1"

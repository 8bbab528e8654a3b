"""One map over tasks: in this process, or in worker processes.

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

from surestep.errors import InvalidParameter

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

"""One map over tasks: in this process, in worker processes, or on a Ray cluster.

Workers are spawned, never forked: a fork copies the threads' locks of compiled kernels but not the
threads, and hangs. They live as long as their lifeline, a pipe whose other end the parent holds:
when the parent is done with them, or dead, it is closed, and they end.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection
from typing import TypeVar

from surestep.errors import InvalidParameter, MissingExtra, SurestepError
from surestep.extensions import SINGULAR, Extension, check_importable, know, registered

Task = TypeVar("Task")
Result = TypeVar("Result")

MOST_WORKERS = 1024


def map_in_order(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, workers: int = 1
) -> Iterator[Result]:
    """`function(task)` for each task, in the order of the tasks, as they get done.

    With more than one worker, function and tasks are pickled: the function must be importable, and
    so must be what `surestep.register` was given.
    The first error of a task is raised, and the tasks not yet begun are dropped.
    """
    if not (isinstance(workers, int) and 1 <= workers <= MOST_WORKERS):
        raise InvalidParameter(f"workers is {workers!r:.40}, expected 1 to {MOST_WORKERS}")
    if workers == 1:
        return (function(task) for task in tasks)
    return in_workers(function, tasks, workers)


def available_cores() -> int:
    """Counts the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_on_ray(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, address: str | None = None
) -> Iterator[Result]:
    """Yields the map as tasks on a Ray cluster, in the order of the tasks.

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
    extensions = registered()
    waiting = [on_worker.remote(function, task, extensions) for task in tasks]
    try:
        for answer in waiting:
            yield ray.get(answer)
    finally:
        for answer in waiting:
            ray.cancel(answer, force=False)


def on_one_thread(
    function: Callable[[Task], Result], task: Task, extensions: tuple[Extension, ...]
) -> Result:
    """`function(task)`, with kernels on one thread, and with what the caller registered."""
    use_one_thread()
    know(extensions)
    return function(task)


def in_workers(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Iterator[Result]:
    """Yields the map in spawned processes, each of which runs kernels on one thread.

    After an error, tasks under way are finished; after an interrupt they are not.
    """
    extensions = registered()
    check_importable(
        (f"{SINGULAR[extension.sort]} {extension.name!r}", extension.thing)
        for extension in extensions
    )
    context = multiprocessing.get_context("spawn")
    lifeline, held = context.Pipe(duplex=False)
    executor = ProcessPoolExecutor(
        workers, mp_context=context, initializer=begin_work, initargs=(lifeline,)
    )
    try:
        with signals_wait():
            answers = deque(
                executor.submit(with_known, function, task, extensions) for task in tasks
            )
        while answers:
            yield answers.popleft().result()
    except BrokenProcessPool:
        raise SurestepError(
            "a worker process died, perhaps for want of memory; try fewer workers"
        ) from None
    except Exception:
        executor.shutdown(cancel_futures=True)
        raise
    else:
        executor.shutdown()
    finally:
        held.close()  # who still works now, was interrupted
        executor.shutdown()
        lifeline.close()


def with_known(
    function: Callable[[Task], Result], task: Task, extensions: tuple[Extension, ...]
) -> Result:
    """`function(task)`, with what the caller registered."""
    know(extensions)
    return function(task)


@contextmanager
def signals_wait() -> Iterator[None]:
    """Lets processes be started undisturbed: a signal meanwhile reaches this one afterwards.

    Those that are started never see Ctrl-C, which a terminal sends to all of a command's processes:
    it is for this one to end them.
    """
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not None:  # None: not Python's to put back
                before[number] = signal.signal(number, lambda number, frame: came.append(number))
    masks = hasattr(signal, "pthread_sigmask")
    if masks:
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        if masks:
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


def begin_work(lifeline: Connection) -> None:
    """Prepares a worker: one thread, and an end when its parent ends."""
    use_one_thread()
    threading.Thread(target=end_with, args=(lifeline,), daemon=True).start()


def end_with(lifeline: Connection) -> None:
    """Ends this process once nobody holds the other end, on which nothing is ever sent."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


def use_one_thread() -> None:
    """Keeps the kernels of a worker to one thread: the workers are what uses the cores.

    A worker has imported Numba already if the caller's main module does; then it is asked itself.
    """
    if "numba" in sys.modules:
        sys.modules["numba"].set_num_threads(1)
    else:
        os.environ["NUMBA_NUM_THREADS"] = "1"

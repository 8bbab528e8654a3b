"""Maps a function over tasks: in this process, in worker processes, or on a Ray cluster.

Workers are spawned, never forked: a fork copies the locks of compiled kernels but not the threads
that hold them, and hangs. Each worker reads from a pipe, its lifeline, whose other end the parent
holds. When the parent closes it, or dies, the worker ends.
"""

import logging
import math
import multiprocessing
import os
import signal
import socket
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from itertools import islice
from multiprocessing.connection import Connection
from typing import Any, TypeVar

from surestep._device_name import VARIABLE, chosen_device
from surestep.errors import (
    ClusterUnavailable,
    DeviceUnavailable,
    InvalidParameter,
    SurestepError,
    optional_module,
    said,
)
from surestep.extensions import SINGULAR, Extension, check_importable, know, registered

Task = TypeVar("Task")
Result = TypeVar("Result")

ENGINES = ("local", "ray")
MOST_WORKERS = 1024
RETRIES = 3  # of a task on Ray whose worker or machine is lost
TASKS_A_CORE = 2  # tasks a core that Ray has at a time, each with a copy of its data
LEAST_SHARE = 1 / 16  # the least share of a GPU for a task: more tasks would exhaust its memory
SECONDS_TO_ANSWER = 10  # the time that a cluster has to answer
OF_TERMINALS = [sign for sign in signal.Signals if sign.name in ("SIGINT", "SIGHUP")]


def map_as_done(
    function: Callable[[Task], Result],
    tasks: Iterable[Task],
    *,
    engine: str = "local",
    workers: int = 1,
    address: str | None = None,
) -> Generator[tuple[int, Result], None, None]:
    """Yields the place of each task and `function(task)`, as they get done.

    `engine` "local" is `workers` processes of this machine, and results come in the order of the
    tasks. "ray" is the cluster at `address`, or a cluster that starts on this machine; only there
    may the order differ.

    With more than one worker, function and tasks are pickled: the function must be importable, and
    so must everything that was given to `surestep.register`. The first error of a task is raised,
    and tasks that have not begun are dropped.
    """
    reach(engine, address)
    if engine == "ray":
        return map_on_ray(function, tasks)
    if not (isinstance(workers, int) and 1 <= workers <= MOST_WORKERS):
        raise InvalidParameter(f"workers is {workers!r:.40}, expected 1 to {MOST_WORKERS}")
    if workers == 1:
        return ((place, function(task)) for place, task in enumerate(tasks))
    return in_workers(function, tasks, workers)


def reach(engine: str, address: str | None = None) -> None:
    """Connects to the cluster for "ray"; refuses other engines than `ENGINES`."""
    if engine not in ENGINES:
        raise InvalidParameter(
            f"{said('engine', '--engine')} is {engine!r:.40}, expected one of {', '.join(ENGINES)}"
        )
    if engine == "ray":
        connected(address)
    elif address is not None:
        on_ray = said("engine='ray'", "--engine ray")
        raise InvalidParameter(f"{said('address', '--address')} is for {on_ray}")


def available_cores(engine: str = "local") -> int:
    """Counts the cores that this process may use, or the cores of the connected cluster."""
    if engine == "ray":
        return max(1, int(connected().cluster_resources().get("CPU", 0)))
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def map_in_threads(function: Callable[[Task], Result], tasks: Sequence[Task]) -> list[Result]:
    """Returns `function(task)` for each task, done in as many threads as kernels may use.

    In a worker process that is one thread. The first task is done before all others, since it
    compiles kernels.
    """
    numba = sys.modules.get("numba")
    threads = min(available_cores() if numba is None else numba.get_num_threads(), len(tasks))
    if threads < 2:
        return [function(task) for task in tasks]
    first = function(tasks[0])
    with ThreadPoolExecutor(threads) as pool:
        return [first, *pool.map(function, tasks[1:])]


# ---- on a Ray cluster ---------------------------------------------------------------------------


def map_on_ray(
    function: Callable[[Task], Result], tasks: Iterable[Task]
) -> Generator[tuple[int, Result], None, None]:
    """Yields the place and the result of each task, in the order in which they finish.

    A task whose worker or machine is lost is done again elsewhere. The cluster gets a few tasks a
    core at a time, so it gets more as it grows.
    """
    ray = connected()
    device = chosen_device()
    extensions = registered()
    on_worker = ray.remote(num_cpus=1, num_gpus=share_of_gpu(ray), max_retries=RETRIES)(as_told)
    waiting = enumerate(tasks)
    under_way = dict[Any, int]()
    try:
        while True:
            for place, task in islice(
                waiting, max(TASKS_A_CORE * available_cores("ray") - len(under_way), 0)
            ):
                under_way[on_worker.remote(function, task, extensions, device)] = place
            if not under_way:
                return
            (answer, *_), _ = ray.wait(list(under_way), num_returns=1)
            yield under_way.pop(answer), ray.get(answer)
    except ray.exceptions.RayTaskError as problem:
        if isinstance(problem.cause, SurestepError):
            raise problem.cause from None  # without the worker's traceback
        raise
    except ray.exceptions.RayError as problem:
        reason = next(iter(str(problem).splitlines()), type(problem).__name__)
        raise ClusterUnavailable(
            f"the Ray cluster did not finish a task: {reason}; expected machines with enough "
            "memory, and with the same packages as here"
        ) from None
    finally:
        for answer in under_way:
            ray.cancel(answer, force=False)


def connected(address: str | None = None) -> Any:
    """Returns Ray, connected to the cluster at an address, or to a cluster that starts here.

    If this process is connected already, the address is ignored.
    """
    ray = optional_module("ray", "running on a cluster needs Ray", "cluster")
    if ray.is_initialized():
        return ray
    try:
        given = address or os.environ.get("RAY_ADDRESS", "")
        host, _, port = given.removeprefix("ray://").rpartition(":")
        if port.isdigit():  # else it is a word such as auto, or a mistake that Ray reports at once
            # If nothing answers there, Ray itself would go on trying for minutes.
            socket.create_connection((host.strip("[]"), int(port)), SECONDS_TO_ANSWER).close()
        ray.init(
            address=address,
            logging_level=logging.ERROR,
            log_to_driver=False,
            include_dashboard=False,
        )
    except (OSError, OverflowError, RuntimeError, ValueError) as problem:
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ClusterUnavailable(
            f"{said('address', '--address')} is {address!r:.80}, but no Ray cluster can be used "
            f"there: {reason}"
        ) from None
    return ray


def share_of_gpu(ray: Any) -> float:
    """Returns the share of a GPU that a task asks for; 0 if there is none, or "cpu" was chosen.

    The share is the number of GPUs divided by the number of cores, the least over all machines, so
    that every core beside a GPU gets a task.
    """
    wanted = chosen_device()
    if wanted == "cpu":
        return 0.0
    machines = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    shares = [
        machine["GPU"] / machine["CPU"]
        for machine in machines
        if machine.get("GPU") and machine.get("CPU")
    ]
    if shares:
        share: float = min(1.0, max(LEAST_SHARE, min(shares)))
        return math.floor(1e4 * share) / 1e4  # Ray counts in ten thousandths
    if wanted == "cuda":
        raise DeviceUnavailable(
            f"{said('device', '--device')} is 'cuda', but no machine of the Ray cluster has a GPU; "
            "expected one on which Ray was told of some when it was started"
        )
    return 0.0


def as_told(
    function: Callable[[Task], Result], task: Task, extensions: tuple[Extension, ...], device: str
) -> Result:
    """Calls `function(task)` on one thread, with the caller's device and plug-ins."""
    use_one_thread()
    os.environ[VARIABLE] = device
    know(extensions)
    return function(task)


# ---- in processes of this machine ---------------------------------------------------------------


def in_workers(
    function: Callable[[Task], Result], tasks: Iterable[Task], workers: int
) -> Generator[tuple[int, Result], None, None]:
    """Yields the place of each task and `function(task)`, done in spawned processes.

    Each process has one thread.

    After an error, tasks that have begun are finished; after an interrupt they are not.
    """
    device = chosen_device()
    extensions = registered()
    check_importable(
        (f"{SINGULAR[known.sort]} {known.name!r}", known.thing) for known in extensions
    )
    context = multiprocessing.get_context("spawn")
    lifeline, held = context.Pipe(duplex=False)
    with signals_wait():  # this also starts Python's own process that cleans up
        executor = ProcessPoolExecutor(
            workers, mp_context=context, initializer=begin_work, initargs=(lifeline,)
        )
    try:
        with signals_wait():
            answers = deque(
                executor.submit(as_told, function, task, extensions, device) for task in tasks
            )
        for place in range(len(answers)):
            yield place, answers.popleft().result()
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
        held.close()  # this ends workers that are still busy after an interrupt
        executor.shutdown()
        lifeline.close()


@contextmanager
def signals_wait() -> Iterator[None]:
    """Holds signals back while processes are started; this process gets them afterwards.

    The new processes ignore the signals that a terminal sends to all processes of a command, such
    as by Ctrl-C: this process ends them.
    """
    came: list[int] = []
    before = {}
    if threading.current_thread() is threading.main_thread():
        for number in (*OF_TERMINALS, signal.SIGTERM):
            if signal.getsignal(number) is not None:  # None: Python could not restore the handler
                before[number] = signal.signal(number, lambda number, frame: came.append(number))
    if hasattr(signal, "pthread_sigmask"):
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, OF_TERMINALS)
    try:
        yield
    finally:
        if hasattr(signal, "pthread_sigmask"):
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
        for number, handler in before.items():
            signal.signal(number, handler)
        for late in came:
            signal.raise_signal(late)


def begin_work(lifeline: Connection) -> None:
    """Prepares a worker: it uses one thread, and ends when its parent ends."""
    use_one_thread()
    threading.Thread(target=end_with, args=(lifeline,), daemon=True).start()


def end_with(lifeline: Connection) -> None:
    """Ends this process when the other end of the pipe is closed; nothing is ever sent on it."""
    with suppress(EOFError, OSError):
        lifeline.recv_bytes()
    os._exit(1)


def use_one_thread() -> None:
    """Makes kernels of this process use one thread, since workers use all cores already.

    If Numba is imported already, as by the caller's main module, its setting is changed.
    """
    if "numba" in sys.modules:
        sys.modules["numba"].set_num_threads(1)
    else:
        os.environ["NUMBA_NUM_THREADS"] = "1"

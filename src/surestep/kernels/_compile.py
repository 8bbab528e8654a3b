"""Compiles kernels with Numba: each on its first call, for exactly one signature."""

import gc
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from threading import Event
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import numba
from numba.core.registry import CPUDispatcher
from numba.core.types.misc import unliteral

from surestep.kernels._code_cache import is_kept, keep_code
from surestep.kernels.devices import at_home, gpu_is_for, on_gpu, require_gpu, run_on_gpu
from surestep.kernels.types import Room, RoomSize, signature_of

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

PARTS_A_THREAD = 4  # several, since tasks differ in length
SWEEP_THREADS = 100_000  # entries from which on threads speed up a pass over memory
LIGHT_THREADS = 1_000_000  # the same for a pass with one or two additions per entry


class Kernel(Generic[Arguments, Result]):
    """A compiled function of one signature; callable like the Python function it was made from.

    A parallel kernel is compiled twice, for one thread and for all, each when first needed. Both
    give the same bits, because they add numbers in the same order.
    """

    def __init__(self, function: Callable[Arguments, Result], threads_from: int | None) -> None:
        self.function = function
        self.threads_from = threads_from  # entries of the largest array; None: never parallel
        self.__doc__ = function.__doc__
        self.code = cache(self.compiled)  # for one thread, or parallel
        self.ready: Event | None = None  # set once another process has compiled it

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Runs the machine code; the first call compiles it or reads it from disk.

        If the arrays are on the GPU, it runs there, and threads share the turns of `prange` loops.
        """
        if on_gpu(args):
            require_gpu().loop(self.function, args)
            return cast(Result, None)
        return self.code(self.threads_from is not None and largest_size(args) >= self.threads_from)(
            *args, **kwargs
        )

    def compiled(self, parallel: bool) -> Callable[Arguments, Result]:
        """Compiles the function, or reads its machine code from disk; stores it there."""
        if self.ready is not None:
            self.ready.wait()
        dispatcher = self.dispatcher(parallel)
        with uncollected():
            dispatcher.compile(signature_of(self.function))
        dispatcher.disable_compile()
        return cast(Callable[Arguments, Result], dispatcher)

    def dispatcher(self, parallel: bool) -> Any:
        """Returns what Numba compiles, and where the machine code is kept."""
        made = numba.njit(parallel=parallel, nogil=True, no_cfunc_wrapper=True)(self.function)
        keep_code(made, "threads" if parallel else "thread")
        return made

    def is_kept(self) -> bool:
        """Tells whether machine code for one thread is stored, or cannot be."""
        return is_kept(self.dispatcher(False), signature_of(self.function))


@contextmanager
def uncollected() -> Iterator[None]:
    """Collects no garbage meanwhile: a compiler makes many objects that live, and little of it."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


class Tasks(Kernel[Concatenate[int, int, Room, Arguments], None]):
    """A kernel that does the tasks first, …, last − 1; tasks are independent of each other.

    It is compiled once, for one thread, which is much faster than compiling a `prange`. If there is
    work for several threads, each thread runs it for some of the tasks; on a GPU, a thread has one
    task.
    """

    def __init__(
        self,
        function: Callable[Concatenate[int, int, Room, Arguments], None],
        threads_from: int | None,
        *,
        on_gpu: bool = True,
    ) -> None:
        """Stores the function to compile, and whether a GPU may run it too."""
        super().__init__(function, threads_from)
        self.on_gpu = on_gpu

    def all(
        self, number: int, size: RoomSize, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        """Does the tasks 0, …, number − 1; each task needs room of the given size."""
        if (
            self.on_gpu
            and gpu_is_for(number, args)
            and run_on_gpu(self.function, number, size, args)
        ):
            return
        with at_home(args) as here:
            self.on_processor(number, size, *here, **kwargs)

    def on_processor(self, number: int, size: RoomSize, *args: Any, **kwargs: Any) -> None:
        """Does the tasks 0, …, number − 1 on the processor; uses all cores if arrays are large."""
        run = self.code(False)
        threads = 1
        if self.threads_from is not None and largest_size(args) >= self.threads_from:
            threads = min(numba.get_num_threads(), number)
        if threads < 2:
            run(0, number, size.room(), *args, **kwargs)
            return
        parts = min(PARTS_A_THREAD * threads, number)
        bounds = [number * part // parts for part in range(parts + 1)]
        with ThreadPoolExecutor(threads) as pool:
            done = [
                pool.submit(run, *part, size.room(), *args, **kwargs) for part in pairwise(bounds)
            ]
            for part in done:
                part.result()


def largest_size(args: tuple[object, ...]) -> int:
    """Returns the size of the largest array; arrays inside records count, too."""
    sizes = (
        largest_size(arg) if isinstance(arg, tuple) else getattr(arg, "size", 0) for arg in args
    )
    return max(sizes, default=0)


def kernel(
    *, threads_from: int | None = None
) -> Callable[[Callable[Arguments, Result]], Kernel[Arguments, Result]]:
    """Makes a kernel of a function over raw arrays and records; its annotations give the types.

    With `threads_from`, its `prange` loops run on all cores once an array has that many entries.
    """
    return lambda function: Kernel(function, threads_from)


def tasks(
    *, threads_from: int, on_gpu: bool = True
) -> Callable[[Callable[Concatenate[int, int, Room, Arguments], None]], Tasks[Arguments]]:
    """Makes `Tasks` of a function of two numbers, raw arrays and records, with annotated types.

    Tasks are spread over all cores once an array has `threads_from` entries. A task that may run on
    a GPU makes no arrays, since a thread there cannot ask for memory: it works in its `Room`.
    """
    return lambda function: Tasks(function, threads_from, on_gpu=on_gpu)


class Helper(CPUDispatcher):  # type: ignore[misc]
    """A function for kernels alone: without a way in from Python it compiles in less time."""

    def __call__(self, *args: Any) -> Any:
        """Runs as Python where Python calls it: the simulator of a GPU, and tests."""
        return self.py_func(*args)

    def get_call_template(self, args: Sequence[Any], kws: Mapping[str, Any]) -> Any:
        """Returns how it is called; a literal such as 0 compiles it for all whole numbers."""
        return super().get_call_template([unliteral(one) for one in args], kws)


def helper(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a function that kernels can call; it is compiled into its callers."""
    return compiled_for_kernels(function)


def borrowing(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a helper without reference counts; it must neither make nor return arrays.

    Numba updates the reference count of an array twice whenever the array is passed on, even to a
    helper that is compiled into its caller. In a loop over single numbers that costs the most time.
    """
    return compiled_for_kernels(function, _nrt=False)


def inlined(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a helper whose machine code always becomes part of its callers."""
    return compiled_for_kernels(function, forceinline=True)


def compiled_for_kernels(
    function: Callable[Arguments, Result], **options: bool
) -> Callable[Arguments, Result]:
    """Makes a `Helper` with these options of Numba."""
    made = numba.njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)(function)
    made.__class__ = Helper
    return cast(Callable[Arguments, Result], made)

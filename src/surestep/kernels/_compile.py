"""Compiles kernels: each on its first call, for exactly one signature."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, cast

import numba
import numpy as np

from surestep.kernels._code_cache import keep_code
from surestep.kernels.devices import any_there, at_home, gpu_is_for, on_gpu, require_gpu, run_on_gpu
from surestep.kernels.types import Room, RoomSize, signature_of

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

PARTS_A_THREAD = 4  # tasks differ in length
SWEEP_THREADS = 100_000  # entries from which a pass over memory gains by more threads
LIGHT_THREADS = 1_000_000  # the same for a pass of an addition or two an entry


class Kernel(Generic[Arguments, Result]):
    """A compiled function of one signature; callable like the Python function it was made from.

    A parallel kernel is compiled twice, for one thread and for all, each when first needed. Both
    give the same bits: what they add up, they add up in the same order.
    """

    def __init__(self, function: Callable[Arguments, Result], threads_from: int | None) -> None:
        """Remembers what to compile; nothing is compiled yet."""
        self.function = function
        self.threads_from = threads_from  # entries of the largest array; None: never parallel
        self.__doc__ = function.__doc__
        self._compiled: dict[bool, Callable[Arguments, Result]] = {}

    def __call__(self, *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        """Runs the machine code, made or read from disk at the first call.

        It runs on the GPU where arrays are there, one turn of its `prange` loops a thread.
        """
        if on_gpu(args):
            require_gpu().loop(self.function, args)
            return cast(Result, None)
        parallel = self.threads_from is not None and largest_size(args) >= self.threads_from
        return self.code(parallel)(*args, **kwargs)

    def code(self, parallel: bool) -> Callable[Arguments, Result]:
        """Returns the machine code, made or read from disk when first asked for."""
        run = self._compiled.get(parallel)
        if run is None:
            run = self._compiled[parallel] = self.compile(parallel)
        return run

    def compile(self, parallel: bool, *, keep: bool = True) -> Callable[Arguments, Result]:
        """Returns the machine code, from disk or for it, unless it is not to be kept."""
        dispatcher = numba.njit(parallel=parallel, nogil=True)(self.function)
        if keep:
            keep_code(dispatcher, "threads" if parallel else "thread")
        dispatcher.compile(signature_of(self.function))
        dispatcher.disable_compile()
        return cast(Callable[Arguments, Result], dispatcher)


class Tasks(Kernel[Concatenate[int, int, Room, Arguments], None]):
    """A kernel that does the tasks first, …, last − 1, which do not know each other.

    It is compiled once, for one thread: that takes a fraction of what a `prange` takes. Where there
    is work for several threads, each runs it for some of the tasks; on a GPU each has one of them.
    """

    def __init__(
        self,
        function: Callable[Concatenate[int, int, Room, Arguments], None],
        threads_from: int | None,
        *,
        on_gpu: bool = True,
    ) -> None:
        """Remembers what to compile, and whether a GPU may run it too."""
        super().__init__(function, threads_from)
        self.on_gpu = on_gpu

    def all(
        self, number: int, size: RoomSize, *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        """Does the tasks 0, …, number − 1, each of which needs room of that size."""
        if (
            self.on_gpu
            and gpu_is_for(number, args)
            and run_on_gpu(self.function, number, size, args)
        ):
            return
        if any_there(args):
            with at_home(args) as here:
                self.on_processor(number, size, *here, **kwargs)
        else:
            self.on_processor(number, size, *args, **kwargs)

    def on_processor(self, number: int, size: RoomSize, *args: Any, **kwargs: Any) -> None:
        """Does the tasks 0, …, number − 1 on the processor, on all cores if there is much."""
        run = self.code(parallel=False)
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
    """Returns the size of the largest array, in records too: are other threads worth waking?"""
    largest = 0
    for value in args:
        if isinstance(value, np.ndarray):
            largest = max(largest, value.size)
        elif isinstance(value, tuple):
            largest = max(largest, largest_size(value))
    return largest


def kernel(
    *, threads_from: int | None = None
) -> Callable[[Callable[Arguments, Result]], Kernel[Arguments, Result]]:
    """Makes a kernel of a function over raw arrays and records, typed as it is annotated.

    With `threads_from`, its `prange` loops run on all cores once an array has that many entries.
    """
    return lambda function: Kernel(function, threads_from)


def tasks(
    *, threads_from: int, on_gpu: bool = True
) -> Callable[[Callable[Concatenate[int, int, Room, Arguments], None]], Tasks[Arguments]]:
    """Makes `Tasks` of a function of two numbers, raw arrays and records, typed as annotated.

    They are spread over all cores once an array has `threads_from` entries. A task makes no arrays:
    it works in the room that it is given, since a GPU has no other memory to hand out; or it is not
    for one.
    """
    return lambda function: Tasks(function, threads_from, on_gpu=on_gpu)


def helper(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a function that kernels can call; it is compiled into its callers."""
    return cast(Callable[Arguments, Result], numba.njit(function))


def borrowing(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a helper that counts no owners of arrays; it neither makes arrays nor returns any.

    To hand an array on, even to a helper that is compiled into its caller, counts its owners twice.
    In a loop over single numbers that takes longer than all else.
    """
    return cast(Callable[Arguments, Result], numba.njit(_nrt=False)(function))


def inlined(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Makes a helper whose `prange` loops are its caller's: parallel where the caller is."""
    return cast(Callable[Arguments, Result], numba.njit(inline="always")(function))

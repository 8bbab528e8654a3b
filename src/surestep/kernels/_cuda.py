"""Runs kernels on a GPU: CUDA compiles the processor's functions, and each task has one thread.

Arrays travel to the GPU and back. The arrays of a batch are transposed on the way, so that
neighbouring threads read and write neighbouring cells. For the same reason, the room of a task is a
column of one large table. A frozen array is sent once and stays there as long as it lives.

With NUMBA_ENABLE_CUDASIM=1, Numba's simulator replaces the GPU. It is very slow; only tests use it,
with a stand-in for CuPy.
"""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from types import FunctionType
from typing import Annotated, Any, get_args, get_origin

import numpy as np
from numba import config, njit

from surestep._arrays import writable_owner
from surestep.errors import install
from surestep.kernels._code_cache import keep_code
from surestep.kernels.types import BATCH, FloatsOut, Room, RoomSize, annotations_of, is_there

if not hasattr(np, "row_stack"):  # numba-cuda 0.30 asks for it while it is imported
    np.row_stack = np.vstack  # noqa: NPY201
config.CUDA_LOW_OCCUPANCY_WARNINGS = 0  # few tasks are not a mistake

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # NumPy warns about the import of numba-cuda
    from numba import cuda

SIMULATED = bool(config.ENABLE_CUDASIM)
THREADS_A_BLOCK = 64
MOST_LANES = 2 if SIMULATED else 1 << 18
LOOP_BLOCKS, LOOP_THREADS = (1, 2) if SIMULATED else (132 * 32, 128)
LEAST_LANES = 1 if SIMULATED else 1 << 10
ROOM_SHARE = 0.5  # the largest part of the free memory that tasks get as room


def find_gpu() -> Gpu | str:
    """Tries the GPU out and returns it, or a line that says why it cannot be used."""
    try:
        import cupy
    except ImportError as problem:
        return f"{problem}; {install('gpu')}"
    try:
        if not cuda.is_available():
            return "no NVIDIA driver or no NVIDIA GPU was found; see what `nvidia-smi` says"
        gpu = Gpu(cupy.cuda.runtime.getDeviceProperties(0)["name"].decode(), cupy)
        done = np.zeros(LEAST_LANES)
        gpu.run(count_tasks, done.size, RoomSize(1, 1), (done,))
    except Exception as problem:  # a driver may raise anything
        first = str(problem).strip().splitlines() or [type(problem).__name__]
        return f"it was found, but failed to work: {first[0]:.200}; see what `nvidia-smi` says"
    return gpu if done.all() else "it was found, but gave wrong results"


def count_tasks(first: int, last: int, room: Room, done: FloatsOut) -> None:
    """Adds 1 to the cell of each task; `find_gpu` tries a GPU out with it."""
    for task in range(first, last):
        room.floats[0] = 1.0
        done[task] += room.floats[0]


@dataclass(eq=False)
class Gpu:
    """A GPU, or the simulator of one."""

    name: str
    arrays: Any  # cupy, or the stand-in of the tests
    kept: dict[tuple[int, bool], Any] = field(default_factory=dict)  # copies of frozen arrays

    def run(
        self, function: Callable[..., None], number: int, size: RoomSize, args: tuple[Any, ...]
    ) -> bool:
        """Does the tasks 0, …, number − 1; returns False and does none if memory is too small.

        Results come back when all tasks are done, so a failure leaves all arrays unchanged.
        """
        if number == 0:
            return True
        back: list[tuple[Any, Any]] = []
        try:
            sent = tuple(
                self.send(*pair, back)
                for pair in zip(args, list(annotations_of(function).values())[3:-1], strict=True)
            )
            lanes = min(-(-number // THREADS_A_BLOCK) * THREADS_A_BLOCK, MOST_LANES)
            room = self.room(size, lanes)
        except MemoryError:
            return False
        lanes = room[0].shape[1]
        if SIMULATED:
            room = np.asarray(room[0]), np.asarray(room[1])
        blocks, threads = -(-lanes // THREADS_A_BLOCK), min(THREADS_A_BLOCK, lanes)
        program(doing_tasks, function)[blocks, threads](number, room, sent)
        for there, here in back:
            self.arrays.ascontiguousarray(there).get(out=here)
        return True

    def loop(self, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """Runs a kernel whose results are written to arrays on the GPU; sends the other arrays."""
        sent = tuple(
            self.send(*pair, [])
            for pair in zip(args, list(annotations_of(function).values())[:-1], strict=True)
        )
        program(looping, function)[LOOP_BLOCKS, LOOP_THREADS](sent)

    def moved(self, arrays: Any) -> Any:
        """Copies the arrays of a record to the GPU; returns None if its memory is too small."""
        try:
            return type(arrays)(*(self.copy(array, False, frozen=True) for array in arrays))
        except MemoryError:
            return None

    def room(self, size: RoomSize, lanes: int) -> tuple[Any, Any]:
        """Returns a column of floats and one of integers for each lane; fewer if memory is low."""
        one = 8 * (size.floats + size.ints)
        while lanes > LEAST_LANES and lanes * one > ROOM_SHARE * self.free:
            lanes //= 2
        while True:
            try:
                return (
                    self.arrays.empty((size.floats, lanes)),
                    self.arrays.empty((size.ints, lanes), np.int64),
                )
            except MemoryError:
                if lanes <= LEAST_LANES:
                    raise
                lanes //= 2

    @property
    def free(self) -> float:
        """Returns the number of free bytes of memory."""
        if SIMULATED:
            return 1e9
        return float(
            self.arrays.cuda.runtime.memGetInfo()[0]
            + self.arrays.get_default_memory_pool().free_bytes()
        )

    def send(self, value: Any, hint: Any, back: list[tuple[Any, Any]]) -> Any:
        """Sends a value to the GPU; `back` collects (copy, array) of arrays that are written."""
        if get_origin(hint) is Annotated:
            array, batch = get_args(hint)[1], BATCH in get_args(hint)
            there = self.copy(value, batch, frozen=not array.mutable)
            if array.mutable and there is not value:
                back.append((there, value))
            return np.asarray(there) if SIMULATED else there
        if hasattr(hint, "_fields"):
            return hint(
                *(
                    self.send(*pair, back)
                    for pair in zip(value, annotations_of(hint).values(), strict=True)
                )
            )
        if get_origin(hint) is tuple:
            return tuple(self.send(*pair, back) for pair in zip(value, get_args(hint), strict=True))
        return hint(value)

    def copy(self, array: Any, batch: bool, frozen: bool) -> Any:
        """Copies an array to the GPU; a frozen array is copied once."""
        if is_there(array):
            return array
        place = id(array), batch
        if place in self.kept:
            return self.kept[place]
        there = self.arrays.asarray(array)
        if batch and array.ndim == 2:
            there = self.arrays.ascontiguousarray(there.T).T
        if frozen and writable_owner(array) is None:
            self.kept[place] = there
            weakref.finalize(array, self.kept.pop, place, None)
        return there


@cache
def program(form: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """Returns the GPU program of a function in this form; it is compiled on its first run."""
    # `do` is a global, no closure variable: Numba's cache would miss with a new closure.
    made = cuda.jit(
        FunctionType(form.__code__, {**globals(), "do": device_form(form, function)}, form.__name__)
    )
    if not SIMULATED:
        keep_code(made, f"{function.__module__}.{function.__name__}")
    return made


def device_form(form: Callable[..., Any], function: Callable[..., Any]) -> Any:
    """Compiles a function for threads on the GPU; with `looping` they share its `prange` loops.

    The simulator calls the function compiled for the processor: Python has no unsigned words.
    """
    if form is looping:
        return cuda.jit(device=True)(
            FunctionType(
                function.__code__,
                {**function.__globals__, "prange": every, "BLOCK_ROWS": 1},
                function.__name__,
            )
        )
    return njit(function) if SIMULATED else cuda.jit(device=True)(function)


@cuda.jit(device=True)
def every(number):  # type: ignore[no-untyped-def]
    """Replaces `prange` on the GPU: returns the turns of the loop that this thread does."""
    return range(cuda.grid(1), number, cuda.gridsize(1))


def looping(args):  # type: ignore[no-untyped-def]
    """Runs a kernel in which threads share out the loops."""
    do(*args)  # type: ignore[name-defined]  # noqa: F821


def doing_tasks(number, room, args):  # type: ignore[no-untyped-def]
    """Runs tasks; a thread does every n-th task, where n is the number of threads."""
    floats, ints = room
    lane = cuda.grid(1)
    if lane < floats.shape[1]:
        own = Room(floats[:, lane], ints[:, lane])
        for task in range(lane, number, floats.shape[1]):
            do(task, task + 1, own, *args)  # type: ignore[name-defined]  # noqa: F821

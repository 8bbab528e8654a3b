"""Chooses the machine that kernels run on: the processor, or a GPU.

The choice stands in an environment variable, so that worker processes know it as well.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np
from numba import config
from numpy.typing import DTypeLike

from surestep._arrays import AnyArray
from surestep._device_name import VARIABLE, Device, chosen_device
from surestep.errors import DeviceUnavailable, MissingExtra, install, said
from surestep.kernels.types import RoomSize, is_there

if TYPE_CHECKING:
    from surestep.kernels._cuda import Gpu

Arrays = TypeVar("Arrays", bound=tuple[Any, ...])
LEAST_ENTRIES = 2_000_000  # a smaller model is planned sooner than it is sent
LEAST_TASKS = 1_000  # fewer tasks leave most of a GPU idle


@contextmanager
def device(name: Device) -> Iterator[None]:
    """Chooses the device that kernels run on, inside a `with` statement.

    Elsewhere the environment variable SURESTEP_DEVICE decides, and without it "auto".

    Parameters
    ----------
    name : {"cpu", "cuda", "auto"}
        The processor, a GPU, or a GPU where it helps. With "auto", if the GPU cannot be used, the
        processor does the work and a warning says why.

    Yields
    ------
    None
        Nothing.

    Raises
    ------
    DeviceUnavailable
        At once, if "cuda" is asked for and there is no GPU that can be used.

    Examples
    --------
    >>> mdp = surestep.FiniteMDP.from_dense([[[1.0]]], [[1.0]], discount=0.5)
    >>> with surestep.device("cpu"):
    ...     surestep.evaluate(mdp, [[1.0]])
    array([2.])
    """
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = name
    try:
        if chosen_device() == "cuda":
            require_gpu()
        yield
    finally:
        if before is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = before


def device_in_use() -> str:
    """Returns the device that runs large batches of tasks: "cpu", or the name of a GPU."""
    gpu = usable_gpu()
    return "cpu" if gpu is None else gpu.name


def on_gpu(args: tuple[Any, ...]) -> bool:
    """Tells whether the last array, to which kernels write, is on the GPU."""
    last = args[-1]
    while isinstance(last, tuple):
        last = last[-1]
    return is_there(last)


def any_there(args: tuple[Any, ...]) -> bool:
    """Tells whether one of the arrays, in records too, is on the GPU."""
    return any(any_there(arg) if isinstance(arg, tuple) else is_there(arg) for arg in args)


def gpu_is_for(number: int, args: tuple[Any, ...]) -> bool:
    """Tells whether the GPU should do `number` tasks: if they are many, or arrays are there."""
    return any_there(args) or gpu_for(number, LEAST_TASKS) is not None


def gpu_for(size: int, least: int) -> Gpu | None:
    """Returns the GPU if it should do work of this size, that is, if it was chosen or pays off."""
    return None if chosen_device() == "auto" and size < least else usable_gpu()


def usable_gpu() -> Gpu | None:
    """Returns the GPU, or None if there is none or the processor was chosen."""
    wanted = chosen_device()
    if wanted == "cpu":
        return None
    if wanted == "cuda":
        return require_gpu()
    if config.ENABLE_CUDASIM or find_spec("numba_cuda") is None:  # a simulator is only slower
        return None
    return gpu_or_none()


def require_gpu() -> Gpu:
    """Returns the GPU; raises an error that says why none can be used."""
    if find_spec("numba_cuda") is None and not config.ENABLE_CUDASIM:
        raise MissingExtra(
            f"{said('device', '--device')} is 'cuda', and what drives a GPU is not installed; "
            f"{install('gpu')}"
        )
    gpu = gpu_or_reason()
    if isinstance(gpu, str):
        raise DeviceUnavailable(
            f"{said('device', '--device')} is 'cuda', but no GPU can be used: {gpu}"
        )
    return gpu


@cache
def gpu_or_none() -> Gpu | None:
    """Returns the GPU, or warns why it cannot be used and returns None."""
    gpu = gpu_or_reason()
    if isinstance(gpu, str):
        warnings.warn(f"the GPU is not used: {gpu}", stacklevel=2)
        return None
    return gpu


@cache
def gpu_or_reason() -> Gpu | str:
    """Returns the GPU, or a line that says why it cannot be used."""
    try:
        from surestep.kernels._cuda import find_gpu
    except ImportError as problem:
        return f"{problem}; {install('gpu')}"
    return find_gpu()


class Machine(NamedTuple):
    """Makes arrays in the memory of the processor, or of the GPU."""

    gpu: Gpu | None

    def empty(self, *shape: int, dtype: DTypeLike = np.float64) -> Any:
        """Returns an uninitialised array in this machine's memory."""
        return (np if self.gpu is None else self.gpu.arrays).empty(shape, dtype)

    def rows(self, size: int, columns: int, dtype: DTypeLike, *, side_by_side: bool) -> Any:
        """Returns an uninitialised table; `side_by_side` stores its rows as columns on a GPU."""
        if self.gpu is None or not side_by_side:
            return self.empty(size, columns, dtype=dtype)
        return self.empty(columns, size, dtype=dtype).T

    def own(self, array: AnyArray) -> Any:
        """Returns the array, or a copy on the GPU."""
        return array if self.gpu is None else self.gpu.arrays.asarray(array)


PROCESSOR = Machine(None)


def machine_for_tasks(number: int) -> Machine:
    """Returns the machine that should do `number` tasks."""
    return Machine(gpu_for(number, LEAST_TASKS))


def machine_for(model: Arrays) -> tuple[Machine, Arrays]:
    """Returns the machine for a model of this size, and the model's arrays on it."""
    gpu = gpu_for(max(array.size for array in model), LEAST_ENTRIES)
    if gpu is not None:
        there = gpu.moved(model)
        if there is not None:
            return Machine(gpu), there
        say_too_small(gpu.name)
    return PROCESSOR, model


def brought_home(array: Any) -> Any:
    """Returns the array, copied from the GPU if it is there."""
    return array.get() if is_there(array) else array


@contextmanager
def at_home(args: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Yields the arguments with arrays copied from the GPU; copies them back at the end."""
    moved: list[tuple[Any, Any]] = []

    def home(arg: Any) -> Any:
        if isinstance(arg, tuple):
            parts = [home(part) for part in arg]
            return type(arg)(*parts) if hasattr(arg, "_fields") else tuple(parts)
        if not is_there(arg):
            return arg
        moved.append((arg, np.ascontiguousarray(arg.get())))
        return moved[-1][1]

    yield tuple(home(arg) for arg in args)
    for there, here in moved:
        there[...] = require_gpu().arrays.asarray(here)


def run_on_gpu(
    function: Callable[..., None], number: int, size: RoomSize, args: tuple[Any, ...]
) -> bool:
    """Does the tasks 0, …, number − 1 on the GPU; returns False if its memory is too small."""
    gpu = require_gpu()
    if gpu.run(function, number, size, args):
        return True
    say_too_small(gpu.name)
    return False


@cache
def say_too_small(name: str) -> None:
    """Warns, once for each GPU, that it lacks memory and the processor does the work."""
    warnings.warn(
        f"{name} has too little memory free for some of this, which the processor does instead; "
        "results are the same",
        stacklevel=2,
    )

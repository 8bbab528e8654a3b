"""Running sums and products within runs, and draws from the distributions that runs hold."""

from __future__ import annotations

from surestep._arrays import FloatArray, IntArray
from surestep.kernels._compile import FLOATS_IN, FLOATS_OUT, INTS_IN, INTS_OUT, kernel


@kernel(INTS_IN, FLOATS_IN, FLOATS_OUT)
def running_sums(offsets: IntArray, values: FloatArray, sums: FloatArray) -> None:
    """The sum of each run up to and including each of its elements, into `sums`."""
    for run in range(offsets.size - 1):
        total = 0.0
        for i in range(offsets[run], offsets[run + 1]):
            total += values[i]
            sums[i] = total


@kernel(INTS_IN, FLOATS_IN, FLOATS_OUT)
def running_products(offsets: IntArray, values: FloatArray, products: FloatArray) -> None:
    """The product of each run up to and including each of its elements, into `products`."""
    for run in range(offsets.size - 1):
        total = 1.0
        for i in range(offsets[run], offsets[run + 1]):
            total *= values[i]
            products[i] = total


@kernel(INTS_IN, FLOATS_IN, INTS_IN, FLOATS_IN, INTS_OUT)
def draw(
    offsets: IntArray,
    cumulative: FloatArray,
    run: IntArray,
    uniform: FloatArray,
    chosen: IntArray,
) -> None:
    """An element of each given run, drawn by inverting its running sums at `uniform` in [0, 1).

    The first element whose running sum exceeds u · (sum of the run), so that an element of
    probability 0 is never drawn, and a run that sums to 1 only nearly is no worse for it.
    """
    for i in range(run.size):
        low, high = offsets[run[i]], offsets[run[i] + 1] - 1
        level = uniform[i] * cumulative[high]
        while low < high:
            middle = (low + high) // 2
            if cumulative[middle] > level:
                high = middle
            else:
                low = middle + 1
        chosen[i] = low

"""Running sums and products within runs, and episodes drawn from the distributions they hold."""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.kernels._compile import helper, kernel
from surestep.kernels._types import FloatsIn, FloatsOut, IntsIn, IntsOut
from surestep.kernels.records import Process


@kernel()
def running_sums(offsets: IntsIn, values: FloatsIn, sums: FloatsOut) -> None:
    """Writes the sum of each run up to and including each of its elements, into `sums`."""
    for run in range(offsets.size - 1):
        total = 0.0
        for i in range(offsets[run], offsets[run + 1]):
            total += values[i]
            sums[i] = total


@kernel()
def running_products(offsets: IntsIn, values: FloatsIn, products: FloatsOut) -> None:
    """Writes the product of each run up to and including each of its elements, into `products`."""
    for run in range(offsets.size - 1):
        total = 1.0
        for i in range(offsets[run], offsets[run + 1]):
            total *= values[i]
            products[i] = total


@helper
def element_at(offsets: IntArray, cumulative: FloatArray, run: int, uniform: float) -> int:
    """Returns the element of the run at which its running sums pass `uniform` in [0, 1).

    The first element whose running sum exceeds u · (sum of the run), so that an element of
    probability 0 is never drawn, and a run that sums to 1 only nearly is no worse for it.
    """
    low, high = int(offsets[run]), int(offsets[run + 1] - 1)
    level = uniform * cumulative[high]
    while low < high:
        middle = (low + high) // 2
        if cumulative[middle] > level:
            high = middle
        else:
            low = middle + 1
    return low


@kernel()
def simulate(
    rng: np.random.Generator, sums: Process, horizon: int, lengths: IntsOut, taken: IntsOut
) -> int:
    """Draws episodes one after the other, as long as another whole one surely fits into `taken`.

    The chances are running sums. The transitions of the episodes go into `taken`, their numbers of
    steps into `lengths`; the answer is how many episodes there are.
    """
    pair_offsets, policy, offsets, successor, probability, over, initial = sums
    whole = np.array([0, initial.size])
    used = 0
    for episode in range(lengths.size):
        if taken.size - used < horizon:
            return episode
        state = element_at(whole, initial, 0, rng.random())
        first = used
        while used - first < horizon and not over[state]:
            pair = element_at(pair_offsets, policy, state, rng.random())
            transition = element_at(offsets, probability, pair, rng.random())
            taken[used] = transition
            used += 1
            state = successor[transition]
        lengths[episode] = used - first
    return lengths.size

"""Policies evaluated in large drawn models on a GPU: all states of all models step at once."""

from __future__ import annotations

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.kernels._device import Machine, brought_home, usable_gpu
from surestep.kernels._types import RoomSize
from surestep.kernels.drawn import Aim, Chunk, Performance, step_drawn

MOST_STEPS = 2_000  # where it takes more, the processor knows better ways


def step_until_near(
    chunk: Chunk,
    pair_offsets: IntArray,
    discount: float,
    policies: FloatArray,
    aim: Aim,
    start: FloatArray,
) -> Performance | None:
    """Evaluates policies [P, K] in drawn models by steps v ← r_π + W v, from `start` [P, S].

    Returns None where that takes too many of them.

    With a discount, v + c is off by c (γ − 1) more than v in every state: what the states have in
    common of an error is taken off at once, and only the rest has to shrink from step to step.
    """
    machine, size, number = Machine(usable_gpu()), len(chunk.ends), len(policies)
    chosen, offsets = machine.own(policies), machine.own(pair_offsets)
    value = machine.own(np.tile(start, (size, 1)))
    after = machine.empty(*value.shape)
    most = machine.empty(size, number)
    for p in range(number):
        most[:, p] = ((chosen[p] > 0) * abs(chunk.reward)).max(axis=1)
    for _ in range(MOST_STEPS):
        step_drawn.all(value.size, RoomSize(), offsets, discount, chunk, chosen, value, after)
        change = after - value
        low, high = change.min(axis=1), change.max(axis=1)
        residual = np.maximum(abs(low), abs(high))
        scale = most.reshape(-1) + abs(value).max(axis=1)
        if (residual <= aim.accuracy * scale / aim.steps).all():
            break
        if discount < 1:
            after += ((low + high) / 2 * discount / (1 - discount))[:, np.newaxis]
        value, after = after, value
    else:
        return None
    if aim.keep:
        start[:] = brought_home(value)
    values = value.reshape(size, number, -1)
    mean = (values * chunk.initial[:, np.newaxis]).sum(axis=2)
    figures = (mean, residual.reshape(size, number), scale.reshape(size, number))
    return Performance(*(brought_home(figure) for figure in figures))

"""Policies evaluated in large drawn models on a GPU: all states of all models step at once.

A step v ↦ F(v) = r_π + W v + c takes off at once, by c, what the states have in common of an error:
v + c is off by c (γ − 1) more than v in every state. The rest shrinks by steps that are mixed with
earlier ones, each to where its change would have the least squares (Anderson mixing; Walker and Ni
2011). That decides how soon an error is small, but not how it is proven: by r_π + W v − v.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.kernels.devices import Machine, brought_home, usable_gpu
from surestep.kernels.drawn import PARTS, Aim, Chunk, Performance, step_drawn
from surestep.kernels.types import RoomSize

MOST_STEPS = 1_000  # where it takes more, the processor knows better ways
MIXED = 3  # earlier steps
VALUES_STEPPING = PARTS + 2 * MIXED + 8  # for every state of a model, under every policy
RIDGE = 1e-12  # of the squares: keeps the equations of a mixture solvable


def step_until_near(
    chunk: Chunk,
    pair_offsets: IntArray,
    discount: float,
    policies: FloatArray,
    start: FloatArray,
    *,
    aim: Aim,
) -> Performance | None:
    """Evaluates policies [P, K] in drawn models on a GPU, from the values `start` [P, S].

    Returns None where that takes too many steps.
    """
    machine, size, number = Machine(usable_gpu()), len(chunk.ends), len(policies)
    chosen, offsets = machine.own(policies), machine.own(pair_offsets)
    value = machine.own(np.tile(start, (size, 1)))
    parts = machine.empty(len(value), start.shape[1] * PARTS)
    most = machine.empty(size, number)
    for p in range(number):
        most[:, p] = ((chosen[p] > 0) * abs(chunk.reward)).max(axis=1)
    mixture = Mixture()
    for _ in range(MOST_STEPS):
        step_drawn.all(parts.size, RoomSize(), offsets, discount, chunk, chosen, value, parts)
        change = parts.reshape(*value.shape, PARTS).sum(axis=2) - value
        residual = abs(change).max(axis=1)
        scale = most.reshape(-1) + abs(value).max(axis=1)
        if (residual <= aim.accuracy * scale / aim.steps).all():
            break
        if discount < 1:
            change += discount / (1 - discount) * change.mean(axis=1)[:, np.newaxis]
        value = mixture.after(value, change)
    else:
        return None
    if aim.keep:
        start[:] = brought_home(value)
    values = value.reshape(size, number, -1)
    mean = (values * chunk.initial[:, np.newaxis]).sum(axis=2)
    figures = (mean, residual.reshape(size, number), scale.reshape(size, number))
    return Performance(*(brought_home(figure) for figure in figures))


class Mixture:
    """The last few steps, each row for itself."""

    def __init__(self) -> None:
        self.last: tuple[Any, Any] | None = None
        self.moves: list[Any] = []  # between the results of a step and of the one before
        self.images: list[Any] = []  # between their changes

    def after(self, value: Any, change: Any) -> Any:
        """Returns what comes after a value [R, S] and its change: the result of a step, mixed."""
        result = value + change
        if self.last is not None:
            self.moves = [*self.moves, result - self.last[0]][-MIXED:]
            self.images = [*self.images, change - self.last[1]][-MIXED:]
        self.last = (result, change)
        if not self.images:
            return result
        squares = np.stack(
            [np.stack([(a * b).sum(axis=1) for a in self.images], axis=1) for b in self.images],
            axis=1,
        )
        aim = np.stack([(image * change).sum(axis=1) for image in self.images], axis=1)
        number = len(self.images)
        ridge = RIDGE * squares.max(axis=(1, 2)) + np.finfo(float).tiny
        for i in range(number):
            squares[:, i, i] += ridge
        weights = np.linalg.solve(squares, aim[:, :, np.newaxis])
        for i, move in enumerate(self.moves):
            result = result - weights[:, i] * move
        return result

"""The baseline: what the episodes of a log earned under π_b, beside what the model says of it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

import surestep._arrays as arrays
from surestep._arrays import FloatArray
from surestep.model.log import DecisionLog

LEVEL = 0.95  # of the interval
FALSE_ALARMS = 0.001  # the chance of a gap where there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """The mean return of the episodes, with a 95 % interval; and ρ(π_b) of the estimated model.

    Where recording stopped before an episode was over, the model's value of what would have come
    is added. The interval is that of a normal mean: for readers, and no guarantee.
    """

    mean: float
    low: float
    high: float
    episodes: int
    cut_off: int  # episodes that were not over when recording stopped
    least: float  # the smallest return of an episode
    greatest: float  # and the largest one
    model: float
    model_episodes: int  # that the model was estimated from

    def gap(self, guessed: float) -> dict[str, float] | None:
        """Returns how the model differs from the episodes, beyond chance and rounding; or None.

        The model's own error is taken to be that of a mean over its episodes; `guessed` is how much
        of its ρ(π_b) is only a guess, the worth of actions that it never saw.
        """
        error = (self.high - self.low) / 2 / usual(LEVEL)
        both = error * math.sqrt(1 + self.episodes / self.model_episodes)
        room = (
            guessed + usual(1 - FALSE_ALARMS) * both + 1e-9 * max(abs(self.mean), abs(self.model))
        )
        if abs(self.model - self.mean) <= room:
            return None
        return {"model": self.model, "low": self.low, "high": self.high}


def usual(level: float) -> float:
    """Returns how many standard errors a normal mean is off at the most, with that confidence."""
    return float(ndtri((1 + level) / 2))


def baseline_of(
    log: DecisionLog, discount: float, value: FloatArray, model: float, model_episodes: int
) -> Baseline:
    """Returns the baseline; `value` [S] is that of π_b in the model, `model` its performance."""
    log = log.with_outcomes()
    first, lengths = log.episode_offsets[:-1], arrays.run_lengths(log.episode_offsets)
    step = np.arange(log.num_steps) - np.repeat(first, lengths)
    weight = discount**step
    earned = np.add.reduceat(weight * log.reward, first)
    last = log.episode_offsets[1:] - 1
    cut_off = ~log.terminated[last]
    after = np.where(cut_off, weight[last] * discount * value[log.next_state[last]], 0.0)
    returns = earned + after
    mean = float(returns.mean())
    half = abs(mean - model)  # one episode contradicts nothing
    if returns.size > 1:
        half = usual(LEVEL) * float(returns.std(ddof=1)) / math.sqrt(returns.size)
    return Baseline(
        mean=mean,
        low=mean - half,
        high=mean + half,
        episodes=returns.size,
        cut_off=int(np.count_nonzero(cut_off)),
        least=float(returns.min()),
        greatest=float(returns.max()),
        model=model,
        model_episodes=model_episodes,
    )

"""The whole: what the model says that was done is worth, against what came of it.

A process whose states leave something out may look Markov from one step to the next, and still not
add up over many. So the value of the log's own policy in the log's own model is held, in each
state, against the mean return of the episodes from there on.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from surestep._arrays import FloatArray, IntArray
from surestep.checks.check import Check, Mark
from surestep.checks.memory import transitions
from surestep.checks.shuffling import first_visits
from surestep.errors import NeverEnds, NotConverged
from surestep.kernels.returns import discounted_returns
from surestep.model.estimate import estimate_behavior, estimate_mdp
from surestep.model.log import DecisionLog
from surestep.planning.evaluation import evaluate

MOST_STATES = 12  # those that most episodes come to
LEAST_EPISODES = 30  # that come to a state


class Returns(NamedTuple):
    """The returns of the episodes from their first visit of a state on, beside the model's."""

    mean: FloatArray  # [S] of the episodes
    episodes: IntArray  # [S]
    value: FloatArray  # [S] of the model
    variance: FloatArray  # [S] of a return, as the model has it
    spread: float  # from the smallest to the largest return


def model_check(log: DecisionLog, discount: float, names: Sequence[str], *, level: float) -> Check:
    """Checks the model's value of π̂_b against mean returns, in the busiest states.

    A mean of n returns that differs by t from the value is as unlikely as Bernstein's inequality
    says, with the model's variance σ² and the spread b of returns:
    p = 2 exp(−n t² / (2σ² + 2bt/3)), times the number of states. Value and mean come from the same
    log, which brings them closer together than two logs would. What would have come after a
    recording stopped is what the model says.

    It holds for a logger that decides by the state alone and learns nothing on the way: the model
    knows but one policy. `names` [S] are those of the states.
    """
    try:
        earned = returns_of(log, discount)
    except (NeverEnds, NotConverged):
        return Check.unchecked("model-returns", "no-discount")
    shown = np.argsort(-earned.episodes, kind="stable")[:MOST_STATES]
    shown = shown[earned.episodes[shown] >= LEAST_EPISODES]
    if shown.size == 0:
        return Check.unchecked("model-returns", "nothing-to-compare")
    if earned.spread == 0:
        return Check.unchecked("model-returns", "nothing-varies")
    number, variance = earned.episodes[shown], earned.variance[shown]
    distance = np.abs(earned.mean - earned.value)[shown]
    room = 2 * variance + 2 * earned.spread * distance / 3
    exponent = np.where(distance > 0, number * distance**2 / np.where(room > 0, room, 1.0), 0.0)
    p_value = min(1.0, shown.size * 2 * math.exp(-min(float(exponent.max()), 700.0)))
    radius = bernstein_radius(number, variance, earned.spread, level / shown.size)
    return Check(
        code="model-returns",
        outcome="failed" if p_value <= level else "passed",
        level=level,
        p_value=p_value,
        rows=int(number.sum()),
        one_an_episode=True,
        noticed=float(radius.min()),
        figures={"states": float(shown.size)},
        picture=tuple(
            Mark(names[s], float(earned.mean[s] - r), float(earned.mean[s] + r),
                 float(earned.mean[s]), float(earned.value[s]))
            for s, r in zip(shown.tolist(), radius.tolist(), strict=True)
        ),
    )  # fmt: skip


def bernstein_radius(
    number: IntArray, variance: FloatArray, spread: float, level: float
) -> FloatArray:
    """Returns by how much a mean of n is off at most: the t at which Bernstein's bound is δ."""
    weight = math.log(2 / level) / number
    linear = spread * weight / 3
    return linear + np.sqrt(linear**2 + 2 * variance * weight)


def returns_of(log: DecisionLog, discount: float) -> Returns:
    """Returns mean returns, values and variances of all states."""
    counts = log.counts()
    model, behavior = estimate_mdp(counts, discount), estimate_behavior(counts)
    value = evaluate(model, behavior)
    place = np.unique(transitions(log), return_inverse=True)[1]
    squares = np.bincount(place, log.reward**2) / np.bincount(place)
    ahead = model.discount[0] * value[model.successor]
    # E[G²] is the value of r² + 2γrV(s') with the discount γ².
    second = replace(model, reward=squares + 2 * model.reward * ahead, discount=model.discount**2)
    variance = np.maximum(evaluate(second, behavior) - value**2, 0.0)
    earned = log.reward + np.where(log.truncated, discount * value[log.next_state], 0.0)
    returns = np.empty(log.num_steps)
    discounted_returns(log.episode_offsets, earned, discount, returns)
    state = log.state.astype(np.int64)
    rows = first_visits(log, state)
    episodes = np.bincount(state[rows], minlength=log.pairs.num_states)
    total = np.bincount(state[rows], returns[rows], log.pairs.num_states)
    return Returns(
        total / np.maximum(episodes, 1),
        episodes,
        value,
        variance,
        float(returns[rows].max() - returns[rows].min()),
    )

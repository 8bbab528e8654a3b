"""A log in two parts: one to choose a policy from, the other to judge it by."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.model.log import DecisionLog


def split_episodes(
    log: DecisionLog, train_share: float, seed: int | None = None
) -> tuple[DecisionLog | None, DecisionLog | None]:
    """Returns the first round(train_share · E) episodes, and the others; None where there is none.

    With a seed, the episodes are shuffled first, so that the order of the log means nothing. Who
    asks again gets the same parts.
    """
    arrays.expect("log", log, DecisionLog)
    check_setting("train_share", train_share, Annotated[float, Meta(ge=0, le=1)])
    cut = round(float(train_share) * log.num_episodes)

    def split() -> tuple[DecisionLog | None, DecisionLog | None]:
        order = np.arange(log.num_episodes)
        if seed is not None:
            order = np.random.default_rng(seed).permutation(order)
        train, test = order[:cut], order[cut:]
        return (
            log.episodes(train) if train.size else None,
            log.episodes(test) if test.size else None,
        )

    return log.remembered(("parts", cut, seed), split)


def first_steps(log: DecisionLog, horizon: int) -> DecisionLog:
    """Returns the log as if recording had stopped after `horizon` steps of each episode."""
    return log.rows(log.step < horizon)

"""Splits a log into two parts: one chooses a policy, the other judges it."""

from typing import Annotated, TypeVar

import numpy as np
from msgspec import Meta

import surestep._arrays as arrays
from surestep._settings import check_setting
from surestep.model import DecisionLog, FactoredLog

Log = TypeVar("Log", DecisionLog, FactoredLog)


def split_episodes(
    log: Log, train_share: float, seed: int | None = None
) -> tuple[Log | None, Log | None]:
    """Returns the first round(train_share · E) episodes, and the others; None where there is none.

    Parameters
    ----------
    log : DecisionLog or FactoredLog
        The log.
    train_share : float
        The share of the first part, from 0 to 1.
    seed : int, optional
        Shuffles the episodes first, so that the order of the log means nothing.

    Returns
    -------
    train : DecisionLog, FactoredLog or None
        The first part.
    test : DecisionLog, FactoredLog or None
        The other episodes. The same arguments give the same objects again.

    Examples
    --------
    >>> from surestep import FiniteMDP, Policy, sample_log
    >>> from surestep.offpolicy import split_episodes
    >>> P = np.zeros((2, 2, 2))
    >>> P[0] = [[0.5, 0.5], [0.1, 0.9]]  # treatment brings the patient home sooner
    >>> model = FiniteMDP.from_dense(P, [[-1.0, -1.0], [0.0, 0.0]], discount=0.9)
    >>> behavior = Policy.uniform(model)
    >>> careful = Policy.from_dense(model, [[0.2, 0.8], [0.5, 0.5]])
    >>> log = sample_log(model, behavior, 2000, horizon=5, rng=np.random.default_rng(1))
    >>> first, rest = split_episodes(log, 0.25)
    >>> first.num_episodes, rest.num_episodes
    (500, 1500)
    """
    arrays.expect("log", log, (DecisionLog, FactoredLog))
    check_setting("train_share", train_share, Annotated[float, Meta(ge=0, le=1)])
    cut = round(float(train_share) * log.num_episodes)

    def split() -> tuple[Log | None, Log | None]:
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

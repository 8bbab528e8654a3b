"""The policy that logged its own probabilities: π_b(a|s) from what the log says of each action."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from surestep._arrays import (
    SUM_TOLERANCE,
    BoolArray,
    FloatArray,
    IntArray,
    floats,
    indices,
    refuse_where,
    run_lengths,
    run_sums,
)
from surestep.errors import InvalidLog
from surestep.model import Pairs, Policy

SAME = 1e-9  # relative: two probabilities so close are one, written with different rounding


class LoggedPolicy(NamedTuple):
    """The policy, and in how many states it rests on more than the log."""

    policy: Policy
    states_completed: int  # what is left of 1 was spread evenly over the actions never seen there
    states_unseen: int  # nobody decided there, so every action is equally likely


def policy_from_propensities(pairs: Pairs, seen: object, low: object, high: object) -> LoggedPolicy:
    """π_b from the lowest and the highest probability that the log gives each pair it shows.

    `seen` [n] numbers the pairs that the log shows, `low` and `high` [n] are in (0, 1]. What the
    actions seen in a state leave of 1 is shared evenly by the actions never seen there.
    """
    pair = indices("pairs seen", seen, pairs.num_pairs, InvalidLog).astype(np.int64)

    def name(i: int) -> str:
        return pairs.pair_name(int(pair[i]))

    least = floats("lowest probability", low, pair.shape, InvalidLog, name)
    most = floats("highest probability", high, pair.shape, InvalidLog, name)
    check_propensities(pairs, pair, least, most)
    logged = np.zeros(pairs.num_pairs)
    logged[pair] = most
    known = np.zeros(pairs.num_pairs, np.bool_)
    known[pair] = True
    return completed(pairs, logged, known)


def check_propensities(pairs: Pairs, pair: IntArray, least: FloatArray, most: FloatArray) -> None:
    """One probability above 0 for each pair, and each pair once."""
    state = pairs.state

    def where(i: int) -> str:
        action = pairs.action_name(int(pairs.action[pair[i]]))
        return f"{action} in {pairs.state_name(int(state[pair[i]]))}"

    twice = np.bincount(pair, minlength=pairs.num_pairs)[pair] > 1
    refuse_where(twice, lambda i: f"{where(i)} is there twice, expected once", "pair", InvalidLog)
    refuse_where(
        ~((least > 0) & (least <= most) & (most <= 1)),
        lambda i: (
            f"the logged probability of {where(i)} is {spoken(least[i], most[i])}, expected above "
            "0 and at most 1: it is that of an action that was taken"
        ),
        "pair",
        InvalidLog,
    )
    refuse_where(
        most - least > SAME * most,
        lambda i: (
            f"the logged probability of {where(i)} is {spoken(least[i], most[i])}: the policy that "
            "made the log looks at more than the state columns, or changed on the way; add the "
            "columns that it looks at to the state, or have the policy estimated from the log"
        ),
        "pair",
        InvalidLog,
    )


def spoken(least: float, most: float) -> str:
    """'0.3', or 'between 0.3 and 0.4'."""
    return f"{least!s}" if least == most else f"between {least!s} and {most!s}"


def completed(pairs: Pairs, logged: FloatArray, known: BoolArray) -> LoggedPolicy:
    """The policy of the logged probabilities [K], with the rest of each state where it belongs."""
    lengths = run_lengths(pairs.offsets)
    total = run_sums(logged, pairs.offsets)
    decided = run_sums(known.astype(np.int64), pairs.offsets)
    unseen = lengths - decided
    refuse_where(
        total > 1 + SUM_TOLERANCE,
        lambda s: (
            f"the logged probabilities of the actions seen in {pairs.state_name(s)} sum to "
            f"{total[s]:.10g}, expected at most 1; check the column of probabilities"
        ),
        "state",
        InvalidLog,
    )
    short = (decided > 0) & (total < 1 - SUM_TOLERANCE)
    refuse_where(
        short & (unseen == 0),
        lambda s: (
            f"the logged probabilities of all actions of {pairs.state_name(s)} sum to "
            f"{total[s]:.10g}, expected 1; if there are more actions, list them"
        ),
        "state",
        InvalidLog,
    )
    nobody = decided == 0
    left = np.where(short | nobody, 1 - total, 0.0)
    share = np.repeat(left / np.maximum(unseen, 1), lengths)
    policy = Policy(pairs, np.where(known, logged, share))
    return LoggedPolicy(policy, int(np.count_nonzero(short)), int(np.count_nonzero(nobody)))

"""The policy that made a log, from the probabilities that its rows name."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import surestep._arrays as arrays
from surestep._arrays import SUM_TOLERANCE, BoolArray, FloatArray, IntArray
from surestep.errors import InvalidLog, said
from surestep.io.counts.labelled import LabelledCounts
from surestep.model import Pairs, Policy

SAME = 1e-9  # relative: two probabilities so close are one, written with different rounding


class LoggedPolicy(NamedTuple):
    """The policy, and in how many states it rests on more than the log."""

    policy: Policy
    states_completed: int  # what is left of 1 was spread evenly over the actions never seen there
    states_unseen: int  # nobody decided there, so every action is equally likely


def propensities_vary(counts: LabelledCounts) -> bool:
    """Tells whether some action was logged with different probabilities in one state."""
    rows = counts.transitions
    if rows.lowest is None or not rows.state.size:
        return False
    pair = rows.state * np.int64(len(counts.actions)) + rows.action
    _, least, most = propensity_ranges(counts, pair)
    return bool((most - least > SAME * most).any())


def propensity_ranges(
    counts: LabelledCounts, pair: IntArray
) -> tuple[IntArray, FloatArray, FloatArray]:
    """Returns the pairs of the transitions, each once, with its least and greatest propensity."""
    rows, order = counts.transitions, np.argsort(pair, kind="stable")
    assert rows.lowest is not None
    assert rows.highest is not None
    seen, first = np.unique(pair[order], return_index=True)
    least = np.minimum.reduceat(rows.lowest[order], first)
    return seen, least, np.maximum.reduceat(rows.highest[order], first)


def policy_from_propensities(
    pairs: Pairs, seen: IntArray, least: FloatArray, most: FloatArray
) -> LoggedPolicy:
    """π_b from the lowest and the highest probability that the log gives each pair it shows.

    `seen` [n] numbers the pairs that the log shows, each once; `least` and `most` [n] are in
    (0, 1]. What the actions seen in a state leave of 1 is shared evenly by the actions never seen
    there.
    """
    of_rows = said("behavior='row-propensities'", "--behavior row-propensities")
    arrays.refuse_where(
        most - least > SAME * most,
        lambda i: (
            f"the logged probability of {pairs.pair_name(int(seen[i]))} is between {least[i]} and "
            f"{most[i]}: the policy that made the log looks at more than the state columns, or "
            "changed on the way; add the columns that it looks at to the state, or say "
            f"{of_rows}: then it is estimated in every state, and whole episodes are weighted by "
            "what their rows say"
        ),
        "pair",
        InvalidLog,
    )
    logged, known = np.zeros(pairs.num_pairs), np.zeros(pairs.num_pairs, np.bool_)
    logged[seen], known[seen] = most, True
    return completed(pairs, logged, known)


def completed(pairs: Pairs, logged: FloatArray, known: BoolArray) -> LoggedPolicy:
    """The policy of the logged probabilities [K], with the rest of each state where it belongs."""
    lengths = arrays.run_lengths(pairs.offsets)
    total = arrays.run_sums(logged, pairs.offsets)
    decided = arrays.run_sums(known.astype(np.int64), pairs.offsets)
    unseen, nobody = lengths - decided, decided == 0
    short = ~nobody & (total < 1 - SUM_TOLERANCE)
    arrays.refuse_where(
        (total > 1 + SUM_TOLERANCE) | (short & (unseen == 0)),
        lambda s: (
            f"the logged probabilities of the actions seen in {pairs.state_name(s)} sum to "
            f"{total[s]:.10g}, expected {'at most ' if unseen[s] else ''}1; check the column of "
            "probabilities, and list all actions if there are more"
        ),
        "state",
        InvalidLog,
    )
    left = np.where(short | nobody, 1 - total, 0.0)
    share = np.repeat(left / np.maximum(unseen, 1), lengths)
    policy = Policy(pairs, np.where(known, logged, share))
    return LoggedPolicy(policy, int(np.count_nonzero(short)), int(np.count_nonzero(nobody)))

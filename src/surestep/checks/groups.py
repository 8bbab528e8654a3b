"""Do actions have other effects in a group of episodes that the state does not determine?

The model gives such a group its own starts, and the effects of actions in all episodes. Let
V be the values of a policy in the model. If, for every pair that the policy takes, the mean of
Y = r + γ V(s') is the same in the group as in the model, then V solves the Bellman equation of the
group, too: its values are those of the model, and so is its gain. So the
test compares Y: among rows of one pair, do those of the group differ in Y from the others?
(`shuffling` says when such a test is exact. The values and the policy depend on outcomes and not on
groups, so they may come from the same rows.)

There are three tests: Y of the new policy among rows with actions that it takes more often than
before, where harm would show; Y of the new policy among all rows; Y of the current policy among all
rows. Each
has a third of the level. A group passes if none fails, if each would have noticed a shift by half a
standard deviation in four of five logs, and if the log shows the group at nearly all pairs that
the new policy takes more often. Otherwise the gain of the group is not known.

**Power.** With n rows of the group and m others at a pair, the statistic of the pair is about χ²
with one degree of freedom. If the mean of the group is off that of all rows by ε standard
deviations, it is off that of the others by d = ε (n + m) / m, and the statistic is noncentral by
d² n m / (n + m) = ε² n (n + m) / m. Statistics and
parameters add up over pairs. A group of nearly all episodes passes easily: the model is its own.
"""

from collections.abc import Sequence
from typing import Literal

import numpy as np
from scipy.special import chdtri, chndtr

from surestep._arrays import BoolArray, FloatArray, IntArray, run_lengths, run_owners
from surestep.checks.check import GivenLog
from surestep.checks.shuffling import (
    FEW_EPISODES,
    POWER,
    Arrangement,
    arranged,
    drawn_visits,
    shuffle_test,
)

LEVEL = 0.05  # the chance that a group fails in which effects are those of all episodes
LARGEST_UNNOTICED = 0.5  # standard deviations of Y
LEAST_ROWS = 2  # of the group, for a pair to count as shown
LEAST_SHOWN = 0.9  # share of the visits to pairs that are taken more often

Untold = Literal["differs", "too-few"]


def untold(
    given: GivenLog, member: BoolArray, more: FloatArray, after: Sequence[FloatArray]
) -> Untold | None:
    """Returns why the gain of a group, given by its episodes [E], is not known; None if it is.

    `more` [K] are the visits of the new policy, from the starts of the group, to pairs that it
    takes more often than before; `after` are γV [S] of the new policy and of the current one.
    """
    log = given.log
    rows: IntArray = np.arange(log.num_steps)
    if log.num_episodes >= FEW_EPISODES and log.num_steps > log.num_episodes:
        rows = drawn_visits(log, log.pair, given.seed)
    pair = log.pair[rows]
    inside = member[run_owners(log.episode_offsets)][rows].astype(np.int64)
    shown = more[np.bincount(pair, inside, more.size) >= LEAST_ROWS]
    enough = float(shown.sum()) >= LEAST_SHOWN * float(more.sum())
    new, current = ((log.reward + value[log.next_state])[rows] for value in after)
    for which, worth in ((more[pair] > 0, new), (pair >= 0, new), (pair >= 0, current)):
        compared = (pair[which], inside[which], worth[which])
        outcome = shuffle_test(*compared, seed=given.seed, level=LEVEL / 3)
        if outcome is not None and outcome.p_value <= LEVEL / 3:
            return "differs"
        # None: nothing could be compared, as nothing varies or only one side has rows.
        enough = enough and (outcome is None or notices(arranged(*compared)))
    return None if enough else "too-few"


def notices(placed: Arrangement) -> bool:
    """Tells whether four of five logs would show that a group is off the model in all pairs."""
    sizes = run_lengths(placed.runs).astype(np.float64)
    others, own = sizes[0::2], sizes[1::2]
    off = LARGEST_UNNOTICED**2 * float((own * (own + others) / others).sum())
    return bool(1.0 - chndtr(chdtri(own.size, LEVEL / 3), own.size, off) >= POWER)

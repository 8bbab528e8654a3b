"""Are episodes copies of each other?

Episodes may be equal by chance in all columns but the ids. Two tests find episodes that are equal
beyond chance; each raises a false alarm in about one log of a million.

**By the model.** q(x) is the chance of an episode x: of its start, and at each step of its action,
reward and next state, given the state and the step before, by the frequencies of the log. Two of n
honest episodes are equal with q(x) below ε with a chance of at most ε n(n − 1)/2.

**By a column of mostly distinct values**, such as a measurement, for episodes of few steps, whose
q is never small. Let g contents of episodes occur more than once, and let c share the values of
that column with another content. Two honest rows with one value have the same action with about the
chance κ of any two rows, and the rest of the row must be equal, too. So P(g or more) is at most
κ^g C(g + c, c).
"""

import math

import numpy as np

import surestep._arrays as arrays
from surestep.checks.check import Check, CheckKind
from surestep.checks.shuffling import shifted
from surestep.model.log import DecisionLog

LOG_ALARM = math.log(1e-6)


def check(log: DecisionLog, contents: arrays.IntArray) -> Check | None:
    """Fails if episodes are equal that chance would hardly make equal.

    `contents` [1 or 2, E] are the digests of `LogSource.contents` for the same log.
    """
    content, *distinct = contents
    if content.size != log.num_episodes:  # the log lacks episodes without any known outcome
        return None
    _, first, place, times = np.unique(content, True, True, True)
    many = times[place] > 1
    unlikely = many & (log_chance(log) + math.log(max(math.comb(content.size, 2), 1)) < LOG_ALARM)
    for values in distinct:
        repeated = int((times > 1).sum())
        shared = first.size - np.unique(values[first]).size
        same = float((frequency(log.action) / log.num_steps).mean())  # κ
        chance = repeated * math.log(same) + math.log(math.comb(repeated + shared, shared))
        unlikely |= many & (chance < LOG_ALARM)
    copies = int(np.count_nonzero(unlikely)) - np.unique(place[unlikely]).size
    return Check.failing(KIND.code, copies > 0, copies=float(copies))


def log_chance(log: DecisionLog) -> arrays.FloatArray:
    """Returns the logarithm of q of each episode [E]."""
    seen = shifted(log, log.pair + 1) * np.int64(log.pairs.num_states) + log.state
    reward = np.unique(log.reward, return_inverse=True)[1]
    here = np.unique(seen, return_inverse=True)[1]
    step = here
    for column in (log.action, reward, log.next_state):  # several times as fast as all at once
        least, most = np.int64(column.min()), np.int64(column.max())
        step = np.unique(step * (most - least + 1) + column - least, return_inverse=True)[1]
    chance = frequency(step) / frequency(here)
    started: arrays.FloatArray = np.log(
        frequency(log.state[log.episode_offsets[:-1]]) / log.num_episodes
    )
    return started + arrays.run_sums(np.log(chance), log.episode_offsets)


def frequency(key: arrays.IntArray) -> arrays.FloatArray:
    """Returns for each key [N] how often it occurs."""
    return np.bincount(key)[key].astype(np.float64)


KIND = CheckKind(
    code="copies",
    title="Episodes may be copies of others",
    failed="Are these the same cases, counted twice? {copies:episode} equal another one in every "
    "column but the ids, more than chance explains. If they are the same, keep one of each. If "
    "not, add a column that tells them apart, such as their time. Then repeat the analysis.",
    figures=("copies",),
    asks=True,
    forbids_proof=lambda check, certificate: True,
)

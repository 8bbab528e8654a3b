"""Does the previous step help to predict the next state, beyond state and action?

Markov: P(s_{t+1} | s_t, a_t, s_{t−1}, a_{t−1}) = P(s_{t+1} | s_t, a_t). The first step of an
episode has "none" before it. Where whole steps would be told apart too finely, actions are.
"""

from __future__ import annotations

from surestep.checks.check import Check, GivenLog, Kind
from surestep.checks.past import permutation_check, steps_before


def check(given: GivenLog) -> Check:
    """Compares next states among rows of the same pair, by the step before."""
    log = given.log
    return permutation_check(KIND.code, given, log.pair, log.next_state, steps_before(log), seed=0)


KIND = Kind(
    code="markov-next-state",
    title="The next situation depends only on the current situation and action",
    passed="No sign that the previous step helps to predict the next situation.",
    failed="The previous step helps to predict the next situation: the recorded situation leaves "
    "something out, and the model may be wrong. Record more of the situation, or a history of "
    "several rows; where episodes have a fixed length, add the number of the step.",
    noticed="Had the previous step alone decided {noticed:%} of all next situations, four of five "
    "such logs would show it.",
    against="markov",
    of_log=check,
)

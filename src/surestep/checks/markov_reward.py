"""Does the previous step help to predict the reward, beyond state, action and next state?"""

from __future__ import annotations

from surestep.checks.check import Check, GivenLog, Kind
from surestep.checks.past import permutation_check, steps_before, transitions


def check(given: GivenLog) -> Check:
    """Compares rewards among rows of the same transition, by the step before."""
    log = given.log
    return permutation_check(
        *(KIND.code, given, log.pair, log.reward, steps_before(log)),
        group=transitions(log),
        seed=1,
    )


KIND = Kind(
    code="markov-reward",
    title="The reward depends only on the current step",
    passed="No sign that the previous step helps to predict the reward.",
    failed="The previous step helps to predict the reward: the recorded situation leaves something "
    "out, and the model may be wrong.",
    noticed="Had the previous step shifted rewards by {noticed} of their standard deviation, four "
    "of five such logs would show it.",
    against="markov",
    of_log=check,
)

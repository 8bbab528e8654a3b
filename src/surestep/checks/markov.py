"""Does the previous step help to predict the next state, or the reward, beyond the present?

Markov: P(s_{t+1} | s_t, a_t, s_{t−1}, a_{t−1}) = P(s_{t+1} | s_t, a_t), and the same for rewards,
given the next state too. The first step of an episode has "none" before it. If too few
rows share the whole step before, only its action is compared.
"""

from collections.abc import Sequence

from surestep._arrays import IntArray
from surestep.checks.check import Check, CheckKind, GivenLog
from surestep.checks.shuffling import permutation_check, steps_before, transitions


def next_state_by_past(given: GivenLog, pasts: Sequence[IntArray] = ()) -> Check:
    """Tests whether the previous step, or `pasts` [N], predicts the next state of a pair."""
    log = given.log
    return permutation_check(
        "markov-next-state", given, log.pair, log.next_state, pasts or steps_before(log), seed=0
    )


def reward_by_past(given: GivenLog, pasts: Sequence[IntArray] = ()) -> Check:
    """Tests whether the previous step, or `pasts` [N], predicts the reward of a transition."""
    log = given.log
    return permutation_check(
        "markov-reward",
        given,
        log.pair,
        log.reward,
        pasts or steps_before(log),
        group=transitions(log),
        seed=1,
    )


KINDS = (
    CheckKind(
        code="markov-next-state",
        title="The next situation depends only on the current situation and action",
        broken="The next situation depends on more than the current situation and action",
        passed="No sign that the previous step helps to predict the next situation.",
        failed="The previous step helps to predict the next situation: the recorded situation "
        "leaves something out, and the model may be wrong. Record more of the situation, or a "
        "history of several rows; where episodes have a fixed length, add the number of the step.",
        noticed="Had the previous step alone decided {noticed:%} of all next situations, four of "
        "five such logs would show it.",
        against="markov",
        of_log=next_state_by_past,
    ),
    CheckKind(
        code="markov-reward",
        title="The reward depends only on the current step",
        broken="The reward depends on more than the current step",
        passed="No sign that the previous step helps to predict the reward.",
        failed="The previous step helps to predict the reward: the recorded situation leaves "
        "something out, and the model may be wrong. Record more of the situation, or a history of "
        "several rows.",
        noticed="Had the previous step shifted rewards by {noticed} of their standard deviation, "
        "four of five such logs would show it.",
        against="markov",
        of_log=reward_by_past,
    ),
)

"""Do transitions, or rewards, differ between the halves of the log, or between shorter blocks?

The log is cut into 2, 4, … 128 blocks in its own order, which is the order of time if rows were
written as they came. All are one test. Rows of the same pair are compared, so a change of the
decisions in between does not matter.
"""

from surestep.checks.check import Check, CheckKind, GivenLog
from surestep.checks.shuffling import blocks, permutation_check, transitions


def next_state_by_time(given: GivenLog) -> Check:
    """Tests whether the block of the log predicts the next state, among rows of the same pair."""
    log = given.log
    half, *finer = blocks(log) if given.parts is None else given.parts
    return permutation_check(
        "drift-next-state", given, log.pair, log.next_state, [half], finer=finer, seed=2
    )


def reward_by_time(given: GivenLog) -> Check:
    """Tests whether the block of the log predicts the reward, among rows of one transition."""
    log = given.log
    half, *finer = blocks(log) if given.parts is None else given.parts
    return permutation_check(
        "drift-reward",
        given,
        log.pair,
        log.reward,
        [half],
        group=transitions(log),
        finer=finer,
        seed=3,
    )


KINDS = (
    CheckKind(
        code="drift-next-state",
        title="The effects of actions did not change over time",
        broken="The effects of actions changed over time",
        passed="No sign that the same action led elsewhere in some parts of the log.",
        failed="The same action in the same situation led elsewhere in some parts of the log than "
        "in others: the claim may hold only for the past. Find out what changed, and repeat the "
        "analysis with the rows since then.",
        noticed="Had {noticed:%} of all next situations been others in the second half, four of "
        "five such logs would show it.",
        against="markov",
        of_log=next_state_by_time,
    ),
    CheckKind(
        code="drift-reward",
        title="The rewards of steps did not change over time",
        broken="The rewards of steps changed over time",
        passed="No sign that the same step earned something else in some parts of the log.",
        failed="The same step earned something else in some parts of the log than in others: the "
        "claim may hold only for the past. Find out what changed, and repeat the analysis with the "
        "rows since then.",
        noticed="Had rewards shifted by {noticed} of their standard deviation in the second half, "
        "four of five such logs would show it.",
        against="markov",
        of_log=reward_by_time,
    ),
)

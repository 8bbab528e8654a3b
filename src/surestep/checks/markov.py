"""Do the steps before help to predict the next state, or the reward, beyond the present?

Markov: P(s_{t+1} | s_t, a_t, s_{t−1}, a_{t−1}, …) = P(s_{t+1} | s_t, a_t), and the same for
rewards, given the next state too. Four pasts are compared: the step before, the one before that,
both together, and the third one. Their tests share the level of the check. Where the episode had
not begun, there is "none". If too few rows share a whole step, only its action is compared.
"""

from collections.abc import Sequence
from dataclasses import replace

from surestep._arrays import AnyArray, IntArray
from surestep.checks.check import Check, CheckKind, GivenLog
from surestep.checks.shuffling import permutation_check, shifted, steps_before, transitions

SPLIT = (0.7, 0.1, 0.1, 0.1)  # of the level; so 299 shuffles are enough for the step before
BACK = (1, 2, 2, 3)  # how far each past goes
APART = 20  # between the numbers that seeds get


def next_state_by_past(given: GivenLog, pasts: Sequence[IntArray] = ()) -> Check:
    """Tests whether the steps before, or `pasts` [N], predict the next state of a pair."""
    return by_past("markov-next-state", given, given.log.next_state, given.log.pair, pasts)


def reward_by_past(given: GivenLog, pasts: Sequence[IntArray] = ()) -> Check:
    """Tests whether the steps before, or `pasts` [N], predict the reward of a transition."""
    return by_past("markov-reward", given, given.log.reward, transitions(given.log), pasts)


def by_past(
    code: str, given: GivenLog, outcome: AnyArray, group: IntArray, pasts: Sequence[IntArray]
) -> Check:
    """Returns the check of the step before, or the one that fails, with how far was looked."""
    log = given.log
    seed = int(code == "markov-reward")
    if pasts:
        return permutation_check(code, given, log.pair, outcome, pasts, group=group, seed=seed)
    one = steps_before(log)
    two = [shifted(log, past) for past in one]
    three = [shifted(log, past) for past in two]
    both = [past * (far.max() + 1) + far for past, far in zip(one, two, strict=True)]
    made = [
        permutation_check(
            code,
            given._replace(level=share * given.level),
            log.pair,
            outcome,
            past,
            group=group,
            seed=seed + APART * place,
            figures={"back": float(BACK[place])},
        )
        for place, (share, past) in enumerate(zip(SPLIT, (one, two, [*both], three), strict=True))
    ]
    least = min(
        1.0 if check.p_value is None else check.p_value / share
        for share, check in zip(SPLIT, made, strict=True)
    )
    failing = [check for check in made if check.outcome == "failed"]
    if failing or made[0].why is None:
        unchecked = [far for far, check in zip(BACK, made, strict=True) if check.why is not None]
        looked = {"back": float(min(unchecked, default=4) - 1)}
        found = failing[0] if failing else replace(made[0], figures=looked)
        return replace(found, p_value=min(least, 1.0), level=given.level)
    return made[0]


def steps(check: Check) -> str:
    """Names the steps that were looked at, with their verb; older results looked at one."""
    back = int(check.figures.get("back", 1))
    return "the previous step helps" if back == 1 else f"the {back} previous steps help"


KINDS = (
    CheckKind(
        code="markov-next-state",
        title="The next situation depends only on the current situation and action",
        broken="The next situation depends on more than the current situation and action",
        passed=lambda check: f"No sign that {steps(check)} to predict the next situation.",
        failed=lambda check: (
            f"{steps(check).capitalize()} to predict the next situation: the recorded situation "
            "leaves something out, and the model may be wrong. Record more of the situation, or a "
            "history of several rows; where episodes have a fixed length, add the number of the "
            "step."
        ),
        noticed="Had the previous step alone decided {noticed:%} of all next situations, four of "
        "five such logs would show it.",
        figures=("back",),
        figures_also=((),),  # in older results, and of one past alone
        against="markov",
        of_log=next_state_by_past,
    ),
    CheckKind(
        code="markov-reward",
        title="The reward depends only on the current step",
        broken="The reward depends on more than the current step",
        passed=lambda check: f"No sign that {steps(check)} to predict the reward.",
        failed=lambda check: (
            f"{steps(check).capitalize()} to predict the reward: the recorded situation leaves "
            "something out, and the model may be wrong. Record more of the situation, or a "
            "history of several rows."
        ),
        noticed="Had the previous step shifted rewards by {noticed} of their standard deviation, "
        "four of five such logs would show it.",
        figures=("back",),
        figures_also=((),),  # in older results, and of one past alone
        against="markov",
        of_log=reward_by_past,
    ),
)

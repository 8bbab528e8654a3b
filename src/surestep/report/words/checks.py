"""Checks of what claims assume, in plain words: the same in the terminal and on pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from surestep._words import THIN_SPACE, counted, listed, number, percent, signed
from surestep.checks import Check, CheckCode
from surestep.checks.check import WhyUnchecked

HEADING = "Can the claim rest on this log?"

# What is assumed.
TITLES: Mapping[CheckCode, str] = {
    "markov-next-state": "State and action tell all that matters for what comes next",
    "markov-reward": "State, action and next state tell all that matters for the reward",
    "model-returns": "The model adds up to what episodes earned",
    "drift-next-state": "What actions lead to did not change on the way",
    "drift-reward": "What steps pay did not change on the way",
    "behavior-memory": "Whoever decided saw only the state",
    "practice-changed": "Actions are still chosen as in the first part of the log",
    "hidden-causes": "There are no hidden causes",
    "enough-data": "There are enough data where the new policy goes",
}
# What failed, and what that means.
FAILED: Mapping[CheckCode, str] = {
    "markov-next-state": (
        "The step before tells what comes next, beyond the state and the action: the states leave "
        "something out, and what the model says may be wrong. Finer states may mend it, or "
        "histories: states of several rows; where episodes end after a fixed number of steps, it "
        "is the number of the step that is left out."
    ),
    "markov-reward": (
        "The step before tells the reward, beyond state, action and next state: the states leave "
        "something out, and what the model says may be wrong."
    ),
    "model-returns": (
        "In some states the episodes earned something else than the model says of what was done: "
        "the states leave something out, or whoever decided changed on the way."
    ),
    "drift-next-state": (
        "The same action in the same state led elsewhere in some parts of the log than in others: "
        "what is claimed may hold for times that are over."
    ),
    "drift-reward": (
        "The same step paid otherwise in some parts of the log than in others: what is claimed "
        "may hold for times that are over."
    ),
    "behavior-memory": (
        "The step before tells which action was taken, beyond the state: whoever decided knew more "
        "than the log shows, or has learnt on the way. What they saw may be what made the outcome."
    ),
    "practice-changed": (
        "Practice has changed since: the later part of the log takes other actions than the part "
        "that chose the new policy. The current policy, which every claim here compares with, is "
        "the practice of that first part."
    ),
}
PASSED: Mapping[CheckCode, str] = {
    "markov-next-state": "No sign that the step before tells more about what comes next.",
    "markov-reward": "No sign that the step before tells more about the reward.",
    "model-returns": "The model's values and the mean returns agree, as far as luck allows.",
    "drift-next-state": "No sign that episodes at other times go on differently.",
    "drift-reward": "No sign that episodes at other times pay differently.",
    "behavior-memory": "No sign that the step before tells more about the action.",
    "practice-changed": "No sign that practice has changed since the policy was chosen.",
}
WHY: Mapping[WhyUnchecked, str] = {
    "no-episodes": "Not checked: without whole episodes nobody knows what came before a row.",
    "too-large": (
        "Not checked: the log has more rows than are loaded for checks, and too few episodes to "
        "draw some of them."
    ),
    "refused": "Not checked: counting refuses the log as it is.",
    "nothing-to-compare": (
        "Not checked: no two groups of rows with the same present differ in what came before."
    ),
    "nothing-varies": "Nothing to check: steps of one kind always earned the same.",
    "too-small": "Not tested: the log is too small to show even a large effect.",
    "no-discount": "Not checked here: values need a discount below 1.",
    "no-claim": "No gain is claimed, so none can fall.",
    "not-assumed": (
        "The claim does not rest on there being none: it compares whole episodes, and rests on the "
        "probabilities with which their actions were taken."
    ),
    "no-result": "How strong they would have to be is told with a result of `improve`.",
    "no-change": "Nothing to check: the new policy does what the current one does.",
    "behavior-given": "Nothing to check: the current policy was given, and not estimated.",
    "behavior-of-all": (
        "Not checked: the current policy was not estimated from the first part of the log alone."
    ),
}
# When places fail.
PLACES_FAIL = (
    "It fails where more than half of the time, as estimated, is spent in states that the log "
    "hardly visits, or of open bins."
)
SMALLEST = 1e-4  # p-value that is written out
MOST_NAMED = 3  # states in a sentence
UNSEEN = (
    "No log shows hidden causes: a severity that doctors see and the log does not can make any "
    "action look good or bad."
)
# What an effect ε of the step before, or of the half of the log, means.
EFFECTS: Mapping[CheckCode, str] = {
    "markov-next-state": "Had the step before alone decided {share} of all next states",
    "markov-reward": "Had the step before shifted rewards by {size} of their standard deviation",
    "drift-next-state": "Had {share} of all next states been others in the second half",
    "drift-reward": "Had rewards shifted by {size} of their standard deviation in the second half",
    "behavior-memory": "Had the step before alone decided {share} of all actions",
    "practice-changed": "Had the part of the log alone decided {share} of all actions",
}


def check_words(check: Check) -> str:
    """Returns what was found about an assumption, in a sentence or two."""
    if check.outcome == "unchecked":
        why = WHY[check.why] if check.why is not None else ""
        return f"{UNSEEN} {why}" if check.code == "hidden-causes" else why
    match check.code:
        case "hidden-causes":
            return hidden_words(check)
        case "enough-data":
            return place_words(check)
        case "practice-changed" if check.outcome == "failed":
            return f"{FAILED[check.code]} {recent_words(check.figures)}"
        case code:
            return (FAILED if check.outcome == "failed" else PASSED)[code]


def recent_words(figures: Mapping[str, float]) -> str:
    """Returns the gain over recent practice, which is an estimate."""
    if not figures["has_gain"]:
        return "Nothing is estimated of the gain over recent practice: it may never end."
    return (
        "Compared with recent practice, the new policy gains an estimated "
        f"{signed(figures['gain'])} an episode; that is not proved."
    )


def hidden_words(check: Check) -> str:
    """Returns how strong hidden causes would have to be."""
    proved, estimated = check.figures["proved"], check.figures["estimated"]
    if estimated >= 1:
        return f"{UNSEEN} The claim is so large that it stands all the same."
    words = (
        f"{UNSEEN} If hidden causes changed the chances of what follows by more than "
        f"{small_percent(estimated)} at every step, the claim of {signed(check.figures['lower'])} "
        "could fall"
    )
    if proved == estimated:
        return f"{words}."
    return (
        f"{words}, as far as the model's values are right; by value bounds alone, from "
        f"{small_percent(proved)} on."
    )


def small_percent(share: float) -> str:
    """Returns a share in per cent, of two digits however small it is."""
    return percent(share) if share >= 0.1 else f"{number(100 * share, 2)}{THIN_SPACE}%"


def place_words(check: Check) -> str:
    """Returns how much of its time the new policy spends where the log hardly was."""
    figures, parts = check.figures, list[str]()
    for name, what in (("scarce", "that the log hardly visits"), ("open", "of open bins")):
        share, states = figures[f"{name}_share"], int(figures[f"{name}_states"])
        if share > 0:
            decisions = counted(int(figures[f"{name}_decisions"]), "decision")
            in_states = f"in {counted(states, 'state')} {what}"
            parts.append(f"{percent(share)} {in_states} ({decisions})")
    if not parts:
        return f"The log has decisions wherever the new policy spends its time{least_known(check)}."
    named = [repr(mark.name) for mark in check.picture if mark.marked][:MOST_NAMED]
    such = f", such as {listed(named)}" if named else ""
    return f"Of its time the new policy spends {listed(parts)}{such}."


def least_known(check: Check) -> str:
    """Returns where, of the states with most time, the log has least for it; empty without any."""
    if not check.picture:
        return ""
    mark = min(check.picture, key=lambda mark: (mark.beside or 0.0) / mark.value)
    return (
        f"; least of all in {mark.name!r}, with {percent(mark.value)} of its time and "
        f"{percent(mark.beside or 0.0)} of the log's decisions"
    )


def test_words(check: Check) -> str:
    """Returns how it was tested, with which p-value, or when it fails; else nothing."""
    if check.code == "enough-data" and check.outcome != "unchecked":
        return PLACES_FAIL
    if check.p_value is None or check.rows is None or check.level is None:
        return ""
    p_value = f"p = {number(check.p_value, 2)}" if check.p_value >= SMALLEST else "p < 0.0001"
    fails = f"{p_value}; it fails at {number(check.level, 2)} or less"
    rows = counted(check.rows, "row")
    if check.episodes is not None:
        drawn, episodes = check.episodes
        rows = f"{rows} of {drawn:,} of {counted(episodes, 'episode')} (drawn at random)"
    if check.code == "model-returns":
        states = counted(int(check.figures["states"]), "state")
        return (
            f"Permutation test over {rows}, which change places within their "
            f"states; of the mean returns in the {states} with most rows: {fails}."
        )
    which = "at most one an episode and kind" if check.one_an_episode else "all"
    return f"Permutation test over {rows}, {which}: {fails}."


def noticed_words(check: Check) -> str:
    """Returns which effect would have been noticed; empty where none would."""
    effect = check.noticed
    if effect is None:
        return ""
    if check.code == "model-returns":
        return f"A difference of {number(effect, 2)} would have been noticed in each of them."
    words = EFFECTS[check.code].format(share=percent(effect), size=number(effect))
    return f"{words}, four of five such logs would show it."


def summary_words(checks: Sequence[Check]) -> str:
    """Returns how many assumptions failed, in a sentence."""
    tested = [check for check in checks if check.outcome in ("passed", "failed")]
    failed = [check for check in tested if check.outcome == "failed"]
    left = len(checks) - len(tested)
    untested = f"; {left:,} could not be tested" if left else ""
    if not tested:
        return "None of the assumptions could be tested."
    many = counted(len(tested), "assumption")
    if failed:
        return f"{len(failed):,} of {many} failed{untested}."
    were, them = ("was", "it") if len(tested) == 1 else ("were", "them")
    return f"{many} {were} tested, and nothing speaks against {them}{untested}."

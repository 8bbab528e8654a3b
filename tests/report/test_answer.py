"""The answer and the changes: one line to act on, never more comfort than the claims allow."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import surestep
from support.claims import MARKOV, SEEN, claim, failing, rehearsal_of
from support.findings import gridworld_findings, maintenance_findings, with_certificate, with_checks
from surestep import Pairs
from surestep._words import floored, number
from surestep.checks import CHECKS, Check, title
from surestep.checks.check import Mark
from surestep.checks.words import speaking_against
from surestep.errors import InvalidParameter
from surestep.io.labels.vocabulary import Vocabulary
from surestep.model.statements import STOPPING, Statement
from surestep.report.answer import (
    EXPLAIN,
    Verdict,
    answer_section,
    claim_sentence,
    counted_on,
    gain_picture,
    proof_words,
    verdict,
)
from surestep.report.changes import changed_items, moves_words, table_section, together
from surestep.report.checks import HIDDEN
from surestep.results.findings import StateChange
from surestep.results.groups import GroupGain
from surestep.results.plots import tone_of

PROOF, NO_PROOF = claim("proved", 0.2), claim("proved", -0.1)
BELIEF = claim("posterior", 0.3, train_share=0.3)
KEEP = "Keep what you do"
ESTIMATED = Statement("behavior-estimated-apart")


@pytest.mark.parametrize(
    ("claims", "more", "rung", "mood", "action", "words"),
    [
        ([PROOF], {}, "proved better", "good", "Adopt it", "gains at least 0.2 per episode"),
        ([claim("proved", 0.2, MARKOV, SEEN)], {}, "proved within the rewards seen", "caution",
         "Answer one question first", "earn less than −140 or more than 160, or the last step"),
        ([claim("proved", 0.2, ESTIMATED)], {}, "proved better", "good", "Adopt it",
         "at least 0.2 per episode more than an estimate of what is done now, if"),
        ([claim("proved", 0.2, ESTIMATED, SEEN)], {}, "proved within the rewards seen", "caution",
         "Answer one question first", "0.2 per episode more than an estimate of what is done now"),
        ([NO_PROOF, BELIEF], {}, "believed better", "caution", "Pilot it", "not measured"),
        ([NO_PROOF, BELIEF], {"rehearsal": rehearsal_of([-1.0] * 18 + [0.1])}, "believed better",
         "caution", "Pilot it", "In 1 of 19 simulated worlds with nothing to gain it wrongly"),
        ([NO_PROOF], {}, "not shown to be better", "caution", KEEP, "at worst it loses 0.1 per"),
        ([NO_PROOF, BELIEF], {"rehearsal": rehearsal_of([1.0] * 19)}, "not shown to be better",
         "caution", KEEP, "the stress test undoes it: luck alone claims as much"),
        ([NO_PROOF, BELIEF], {"awaited": True}, "not shown to be better", "caution", KEEP,
         "is still to come"),
        ([claim("none", None)], {}, "not shown to be better", "bad", KEEP,
         "There is no guarantee: The log is too small."),
        ([claim("proved", -1.0)], {}, "not shown to be better", "bad", KEEP,
         "No useful guarantee: this log cannot rule out a large loss."),
        ([claim("proved", 0.2, STOPPING)], {}, "not shown to be better", "caution", KEEP,
         "find out why they stopped."),
        ([claim("proved", -0.1, SEEN)], {}, "not shown to be better", "caution", KEEP,
         "Proved within the rewards seen: at worst it loses 0.1 per episode."),
        ([claim("proved", -0.1, STOPPING)], {}, "not shown to be better", "caution", KEEP,
         "better. With 90\u202f% confidence the new policy loses at most 0.1 per episode."),
        ([NO_PROOF, replace(BELIEF, assumptions=(STOPPING,))], {}, "believed better", "caution",
         "Pilot it", "It takes the lost cases for like the others in the same situation."),
        ([PROOF], {"named": False}, "not shown to be better", "caution", KEEP,
         "who keeps the best of several has proved nothing"),
        ([BELIEF], {"named": False}, "believed better", "caution", "Pilot it", "a model puts"),
        ([BELIEF], {"awaited": True}, "not shown to be better", "caution", KEEP, "still to come"),
        ([BELIEF], {"rehearsal": rehearsal_of([None] * 9)}, "believed better", "caution",
         "Pilot it", "How often such beliefs are wrong was not measured."),
        ([PROOF], {"checks": [failing("markov-next-state")]}, "not shown to be better", "bad",
         "First find out why a check failed", "One check failed: “The next situation depends"),
        ([PROOF], {"changed": False}, "nothing changed", "plain", KEEP, "too short to tell"),
    ],
)  # fmt: skip
def test_every_rung_has_its_line_to_act_on(claims, more, rung, mood, action, words):
    found = verdict(claims, **{"changed": True, **more})
    assert found[:3] == (rung, mood, action)
    assert words in found.why
    assert (counted_on(claims, found).mood == "good") == (action == "Adopt it")


CLAIMS = st.builds(
    claim,
    st.sampled_from(["proved", "asymptotic", "posterior", "as-published", "by-extension"]),
    st.one_of(st.floats(-2, 2), st.sampled_from([1e-300, -1e-9, 0.0, 1e300, -1e300])),
    st.sampled_from([MARKOV, SEEN, STOPPING, Statement("no-hidden-causes", {})]),
    train_share=st.sampled_from([0.0, 0.3]),
) | st.just(claim("none", None))
LADDERS = {
    "certificates": st.lists(CLAIMS, min_size=1, max_size=3),
    "changed": st.booleans(),
    "rehearsal": st.sampled_from([None, rehearsal_of([1.0] * 19), rehearsal_of([-1.0] * 19)]),
    "awaited": st.booleans(),
    "fresh": st.booleans(),
    "named": st.booleans(),
    "checks": st.lists(st.sampled_from([*CHECKS]).map(failing), max_size=3),
}


@given(st.fixed_dictionaries(LADDERS))
def test_only_a_proof_that_nothing_speaks_against_is_adopted(given_):
    claims, checks = given_.pop("certificates"), given_["checks"]
    found = verdict(claims, **given_)
    sound = not speaking_against(checks, claims[0])
    if found.action == "Adopt it":
        assert found.rung == "proved better"
        assert sound
        assert given_["named"]
        assert given_["changed"]
    assert (found.mood == "good") == (found.action == "Adopt it")
    if found.action == EXPLAIN:
        assert found.rung == "not shown to be better"
    key = counted_on(claims, found)
    assert (key.mood == "good") == (found.action == "Adopt it")
    if found.action in (KEEP, "Pilot it"):
        assert key.name != "You may count on" or key.value in ("nothing", "no change")


@given(CLAIMS)
def test_what_is_shown_as_a_lower_bound_is_never_above_it(certificate):
    key = counted_on([certificate], Verdict("not shown to be better", "caution", "", ""))
    if certificate.lower is None or certificate.says_nothing:
        assert key.value == "nothing"
        return
    assert read(key.value) <= certificate.lower
    sentence = claim_sentence(certificate, "per episode")
    said = read(sentence.split(" at least " if " at least " in sentence else " at most ")[1])
    assert (said if " at least " in sentence else -said) <= certificate.lower


def read(text):
    """The number that a text begins with."""
    raised = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻−", "0123456789--")
    text = text.translate(raised).split(" per ")[0].replace(",", "").replace("±", "")
    return float(text.replace(" × 10", "e"))


@given(st.floats(-1e300, 1e300))
def test_rounding_down_is_down_and_near(value):
    down = floored(value)
    assert down <= value
    assert value - down <= max(1e-3 * abs(value), 5e-324)
    assert read(number(down)) == pytest.approx(down, rel=1e-15, abs=0) or abs(value) < 1e-300


def test_a_failed_check_comes_first_and_a_belief_is_no_green():
    findings = with_checks(with_certificate(gridworld_findings(), standing="proved", lower=0.1))
    answer = answer_section(findings)
    against, changes = answer.parts
    assert (against.name, against.mood, changes.name) == ("against", "bad", "top")
    wrong = [check for check in findings.record.checks if check.outcome == "failed"]
    assert [item.title for item in against.items] == [title(check) for check in wrong]
    assert answer.title == "First find out why a check failed"
    assert all(title(check) in answer.sentences[0] for check in wrong[:2])
    assert tone_of(PROOF) == "green"
    for weaker in (BELIEF, NO_PROOF, claim("asymptotic", 0.2), claim("proved", 0.2, SEEN)):
        assert tone_of(weaker) != "green"
    assert tone_of(replace(PROOF, assumptions=(STOPPING,))) == "blue"


def test_a_loss_of_all_that_can_be_lost_is_no_useful_guarantee():
    findings = gridworld_findings()
    today = findings.record.estimates["behavior"]
    for room, mood in ((0.0, "bad"), (1e-6, "caution")):
        claimed = {"standing": "proved", "lower": -today + room, "span": 9.0}
        figures = {"value_low": 0.0}
        shown = answer_section(with_certificate(findings, **claimed, figures=figures))
        useless = mood == "bad"
        assert (shown.mood, shown.sentences[0].startswith("No useful")) == (mood, useless)
        assert (shown.keys[0].value == "nothing") == useless
    seen = {"standing": "proved", "lower": -today / 2, "assumptions": (SEEN,)}
    shown = answer_section(with_certificate(findings, **seen))
    assert shown.keys[0].meaning.endswith("confidence within the rewards seen")


def test_hidden_causes_are_named_whatever_else_speaks_against_it():
    plain = gridworld_findings()
    assert HIDDEN in answer_section(plain).parts[0].sentences
    told = answer_section(with_checks(maintenance_findings())).parts[0].sentences[-1]
    assert "an action 3.7 times as often (in odds) in situations that look the same" in told
    assert told.endswith(
        "One as strong as “ward”, which is recorded (3.6 times), would not undo it."
    )
    for why, named in (
        ("no-claim", True),
        ("behavior-given", True),
        ("behavior-known", False),
        ("not-assumed", False),
    ):
        record = replace(plain.record, checks=(Check.unchecked("hidden-causes", why),))
        against = answer_section(replace(plain, record=record)).parts[0]
        assert (HIDDEN in against.sentences) == named


@pytest.mark.parametrize(("odds", "named"), [(1.2, True), (1.9, False)])
def test_adopt_it_names_a_column_that_is_as_strong_as_what_would_undo_it(odds, named):
    curve = (Mark("", 1.0, 1.0, 0.5), Mark("severity", 1.0, 1.8, 1.8), Mark("sex", 1.0, 1.1, 1.1))
    figures = {"estimate_odds": 2.0, "belief_odds": odds}
    told = Check(code="hidden-causes", outcome="told", figures=figures, picture=curve)
    judged = verdict([claim("proved", 0.1)], changed=True, checks=[told])
    assert (judged.rung, judged.action, judged.mood) == ("proved better", "Adopt it", "good")
    first = "Only if nothing unrecorded sways decisions as much as “severity” does (odds of 1.8; "
    assert judged.why.startswith(first + "1.2 may undo the gain). With 90") == named
    assert ("severity" in judged.why) == named


def test_changes_that_rows_set_aside_contradict_are_named():
    findings = maintenance_findings()
    wrong = findings.changes[0]._replace(evidence="contradicted")
    others = (change._replace(evidence="open") for change in findings.changes[1:])
    against = answer_section(replace(findings, changes=(wrong, *others))).parts[0]
    (named,) = (item for item in against.items if item.title.startswith("Contradicted change: "))
    assert all(text in named.title for text in findings.table.vocabulary.state_name(wrong.state))
    assert named.text == moves_words(findings.table, [wrong.state])
    assert (named.sign, named.mood) == ("✗", "bad")


def test_what_would_settle_it_is_a_range_and_no_word_where_cases_stopped():
    def words(wanted, *assumed):
        found = replace(
            maintenance_findings().record,
            estimates={"behavior": 0.0, "policy": 1.0, "episodes_for_proof": wanted},
            data={"episodes": 574},
        )
        return proof_words(found, [NO_PROOF, claim("posterior", 0.1, MARKOV, *assumed)])

    assert words(2_900).startswith("The log has 574 episodes; about 2,900 to 8,700 in all may")
    assert words(574).startswith("A proof was within reach: a log of this size to 3 times that")
    assert all("looking until it turns green proves nothing" in words(n) for n in (574, 2_900))
    assert words(None) == "More episodes like these alone would not settle it."
    assert words(2_900, STOPPING) == words(2_900, Statement("stopped-by-clock")) == ""


# Policies that look alike once they are rounded, and are not.
POLICIES = ((0.5, 0.5), (0.5 + 1e-15, 0.5 - 1e-15), (0.25, 0.75), (1.0, 0.0), (1 - 1e-12, 1e-12))
LABELS = [(a, b, c) for a in "xyz" for b in "01" for c in ("", "low")]


@st.composite
def changed_findings(draw):
    """Findings with states of three columns, of which some change."""
    names = draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=12, unique=True))
    chosen = [draw(st.sampled_from(POLICIES)) for _ in names]
    evidence = st.sampled_from([None, "confirmed", "open", "contradicted"])
    changed = draw(st.lists(st.sampled_from(range(len(names))), min_size=1, unique=True))
    pairs, visits = Pairs.full(len(names), 2), np.arange(2 * len(names))
    table = replace(
        maintenance_findings().table,
        vocabulary=Vocabulary(("a", "b", "c"), ("do",), tuple(names), (("wait",), ("act",))),
        pairs=pairs, probability=np.array(chosen).ravel(),
        behavior=np.full(pairs.num_pairs, 0.5) + np.tile([0.125, -0.125], len(names)),
        visits=visits, trusted=visits > 3, q=visits / 7, advantage=visits / 9,
        quiet=np.zeros(len(names), np.bool_), held_out_visits=visits,
        advantage_low=visits - 1.0, advantage_high=visits + 1.0,
    )  # fmt: skip
    changes = tuple(StateChange(s, 0.1, 0.5, 1 / (1 + s), draw(evidence)) for s in changed)
    return replace(maintenance_findings(), table=table, changes=changes)


@given(changed_findings())
def test_equal_advice_is_shown_together_and_all_of_it_once(findings):
    table, name = findings.table, findings.table.vocabulary.state_name
    policy = table.probability.reshape(-1, 2)
    groups = [*together(table, findings.changes)]
    shown = [change for group in groups for change in group.changes]
    assert sorted(shown) == sorted(findings.changes)
    assert [group.changes[0] for group in groups] == sorted(
        (group.changes[0] for group in groups), key=findings.changes.index
    )
    for group in groups:
        first = group.changes[0]
        names = [name(change.state) for change in group.changes]
        for change in group.changes:
            assert policy[change.state].tobytes() == policy[first.state].tobytes()
            assert change.evidence == first.evidence
        assert sum(len({each[i] for each in names}) > 1 for i in range(3)) <= 1
        assert np.prod([len(texts) for texts in group.situation]) == len(names)
        for i, texts in enumerate(group.situation):
            assert {*texts} == {each[i] for each in names}


@given(changed_findings())
def test_always_is_said_of_what_is_done_always(findings):
    for change in findings.changes:
        words = moves_words(findings.table, [change.state])
        first, last = findings.table.pairs.offsets[change.state : change.state + 2]
        certain = findings.table.probability[first:last].max() == 1
        assert words.startswith("always ") == certain
        assert "100\u202f%" not in words
    for item in changed_items(findings):
        assert item.mood == {"✓": "good"}.get(item.sign, "plain")
    # What the rest of the log contradicts is not among those that matter most.
    contradicted = [c._replace(evidence="contradicted") for c in findings.changes]
    assert [*changed_items(replace(findings, changes=tuple(contradicted)))] == []


def test_the_table_has_every_situation_the_changed_ones_first():
    findings = gridworld_findings()
    (table,) = table_section(findings).tables
    word = [row[-1] for row in table.rows]
    assert word == ["changed"] * len(findings.changes) + ["unchanged"] * (
        findings.table.num_deciding - len(findings.changes)
    )
    assert len({row[:2] for row in map(tuple, table.rows)}) == findings.table.num_deciding
    shares = [row[-2].key for row in table.rows[: len(findings.changes)]]
    assert shares == sorted(shares, reverse=True)


def test_the_number_to_count_on_says_if_it_compares_with_an_estimate():
    compared = claim("proved", 0.2, ESTIMATED)
    key = counted_on([compared], verdict([compared], changed=True))
    assert "per episode more than an estimate of what is done now, with 90" in key.meaning
    recorded = claim("proved", 0.2, Statement("practice-as-recorded"))
    for each in (PROOF, recorded):
        assert "estimate" not in counted_on([each], verdict([each], changed=True)).meaning
    guessed = maintenance_findings(estimated=True)
    findings = with_certificate(guessed, assumptions=recorded.assumptions)
    assert "compares with what episodes returned" in str(answer_section(findings))


ONE_STEP = {
    "state": ["mild", "mild", "severe", "severe"] * 60,
    "action": ["wait", "treat"] * 120,
    "reward": [1.0, 0.0, 0.0, 1.0] * 60,
}


@pytest.mark.thorough
def test_the_page_says_which_log_it_is_about():
    about = {"title": "Ward <3>", "population": "patients", "period": "2024"}
    asked = {"discount": 0, "ending": (0, 1), "worlds": 0}
    page = surestep.improve(ONE_STEP, about=about, **asked).report
    assert '<p class="eyebrow">Ward &lt;3&gt;</p>' in page
    assert "<bdi>240 episodes · patients · 2024</bdi>" in page
    assert "What is gained." in page
    with pytest.raises(InvalidParameter, match="titel"):
        surestep.improve(ONE_STEP, about={"titel": "x"}, **asked)
    assert "What is gained." not in surestep.improve(ONE_STEP, n_wedge=1000, **asked).report


@pytest.mark.parametrize("lower", [0.207129, 0.0, -0.314159])
def test_the_bar_has_0_the_bound_and_the_best_guess(lower):
    findings = maintenance_findings()
    held_out = {"held_out_gain": 0.4, "held_out_low": 0.3, "held_out_high": 0.55}
    record = replace(findings.record, estimates={**findings.record.estimates, **held_out})
    (picture,) = gain_picture(replace(findings, record=record), claim("proved", lower))
    (bar,) = picture.strips
    assert (bar.inner, bar.point) == ((0.3, 0.55), 0.4)
    values = sorted(flag.value for flag in picture.flags)
    assert 0.0 in values
    assert all(value <= max(lower, 0.0) for value in values)  # a bound is never rounded up
    assert gain_picture(replace(findings, record=record), claim("none", None)) == []
    assert gain_picture(findings, claim("proved", lower)) == []  # nothing was set aside


def test_a_harmed_group_is_in_the_line_to_act_on_and_in_the_advice():
    findings = with_certificate(maintenance_findings(), standing="proved", lower=123.0)
    words = findings.table.vocabulary
    column = words.state_columns[0]
    values = dict.fromkeys(label[0] for label in words.states)
    harmed = tuple(
        GroupGain(column=column, value=value, episodes=50, gain=-2.0, low=-3.0, high=-1.0)
        for value in values
    )
    other = GroupGain(column="sex", value="f", episodes=50, gain=1.0, low=-3.0, high=2.0)
    shown = answer_section(replace(findings, record=replace(findings.record, groups=(other,))))
    assert (shown.title, shown.mood) == ("Adopt it", "good")
    assert not any("keep what you do" in item.text for item in shown.parts[-1].items)
    record = replace(findings.record, groups=(*harmed, other))
    shown = answer_section(replace(findings, record=record))
    assert (shown.title, shown.mood) == ("Adopt it, but not for everyone", "caution")
    assert shown.sentences[0].startswith(f"It is worse for “{harmed[0].name}”")
    assert shown.parts[-1].name == "top"
    for item in shown.parts[-1].items:
        assert item.text.startswith(f"keep what you do: worse for “{column}: ")
        assert (item.sign, item.mood) == ("✗", "bad")

"""The rehearsal on the page: its own numbers, plain words, and never taken for a confidence."""

import math
import re
from dataclasses import replace

import html5lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from surestep.report.html import document
from surestep.report.pages.answer import answer_section
from surestep.report.pages.rehearsal import rehearsal_section
from surestep.report.words.rehearsal import more_data_words, own_size

from findings import rehearsed_findings
from surestep._words import percent, signed
from surestep.rehearsal import Calibration
from surestep.results.findings import NoRehearsal

GAINS = st.one_of(
    st.floats(-1e9, 1e9, allow_nan=False), st.sampled_from([0.0, 1e-12, -1e-12, 1e30, -1e30])
)


def tree(section):
    """A section on a page of its own, which must be without any error."""
    page = document("t", [section], style="", script="")
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def text_of(node):
    return plain(" ".join("".join(node.itertext()).split()))


def plain(text):
    """Without the narrow spaces of the page."""
    return text.replace("\u202f", " ")


def rows_of(root, identity):
    body = root.find(f".//table[@id='{identity}']/tbody")
    return [[text_of(cell) for cell in row] for row in body]


def shown(**changes):
    """The section about a rehearsal with something changed."""
    findings = rehearsed_findings()
    return tree(rehearsal_section(with_rehearsal(findings, **changes)))


def with_rehearsal(findings, **changes):
    return replace(findings, rehearsal=replace(findings.rehearsal, **changes))


def keys(root):
    """The name, number and meaning of each key figure."""
    return [
        [text_of(part) for part in node] for node in root.iter("div") if "key" in classes_of(node)
    ]


def classes_of(node):
    return (node.get("class") or "").split()


def box(root):
    (found,) = [node for node in root.iter("div") if "box" in classes_of(node)]
    return found


# ---- the numbers ---------------------------------------------------------------------------------


def test_the_key_figures_are_counted_in_the_worlds_at_size_1():
    rehearsal = rehearsed_findings().rehearsal
    gain, claim = rehearsal.gain[:, 0], rehearsal.claim[:, 0]
    assert rehearsal.sizes[0] == 1
    counts = [(gain < 0).sum(), (claim > gain).sum(), (claim > 0).sum()]
    assert 0 < counts[0] < gain.size
    for (_, value, meaning), count in zip(keys(shown()), counts, strict=True):
        assert value == plain(percent(count / gain.size))
        assert f"{count} of {gain.size} worlds; 95 % interval" in meaning
    harmed = rehearsal.summary().harmed
    assert plain(f"{percent(harmed.low)} to {percent(harmed.high)}") in keys(shown())[0][2]


def test_harm_is_loud():
    moods = [classes_of(node) for node in shown().iter("div") if "key" in classes_of(node)]
    assert moods[0] == ["key", "bad"]
    rehearsal = rehearsed_findings().rehearsal
    harmless = shown(gain=np.abs(rehearsal.gain))
    moods = [classes_of(node) for node in harmless.iter("div") if "key" in classes_of(node)]
    assert moods[0] == ["key", "good"]
    assert keys(harmless)[0][1] == "0 %"


def test_the_picture_counts_every_world_once():
    gain = rehearsed_findings().rehearsal.gain[:, 0]
    rows = rows_of(shown(), "gains-numbers")
    worse, same, better = (sum(int(row[i]) for row in rows) for i in (1, 2, 3))
    assert (worse, same, better) == ((gain < 0).sum(), (gain == 0).sum(), (gain > 0).sum())


def test_every_kind_of_world_has_its_numbers():
    rehearsal = rehearsed_findings().rehearsal
    rows = rows_of(shown(), "kinds-numbers")
    assert [row[0] for row in rows] == list(rehearsal.family)
    for i, row in enumerate(rows):
        gain = rehearsal.gain[rehearsal.member == i, 0]
        assert row[1] == f"{(gain < 0).sum()} of {gain.size}"
        assert row[5] == signed(float(np.median(gain)))


def test_the_power_at_each_size():
    rehearsal = rehearsed_findings().rehearsal
    rows = rows_of(shown(), "power-numbers")
    assert [row[0] for row in rows] == ["× 1", "× 4", "× 16"]
    assert [row[1] for row in rows] == ["40", "160", "640"]
    certified = np.mean(rehearsal.claim > 0, axis=0)
    calibrated = np.mean(rehearsal.calibrated_claim > 0, axis=0)
    for z, row in enumerate(rows):
        assert row[2:4] == [plain(percent(certified[z])), plain(percent(calibrated[z]))]
        rate = rehearsal.summary(rehearsal.sizes[z]).calibrated_certified
        assert row[4] == plain(f"{percent(rate.low)} to {percent(rate.high)}")


@settings(max_examples=25)
@given(arrays(float, (40, 3), elements=GAINS), st.booleans())
def test_any_numbers_are_drawn_inside_the_picture(gain, refused):
    claim = np.full((40, 3), np.nan) if refused else gain + 1.0
    root = shown(gain=gain, claim=claim, calibrated_claim=None, calibration=None)
    for node in root.iter():
        for name in ("x", "y", "width", "height", "d", "cx", "cy"):
            for found in re.findall("nan|inf|-?[0-9.]+(?:e[-+][0-9]+)?", node.get(name) or ""):
                assert math.isfinite(float(found))
                assert -80 <= float(found) <= 1000


def test_a_claim_that_is_far_off_is_pointed_at():
    findings = rehearsed_findings()
    far = replace(findings, certificate=replace(findings.certificate, lower=-1e30))
    words = [text_of(node) for node in tree(rehearsal_section(far)).iter() if node.tag != "div"]
    assert "← guaranteed: L = −1 × 10³⁰" in words


def test_worlds_without_a_claim_are_counted():
    rehearsal = rehearsed_findings().rehearsal
    claim = np.where(np.arange(40)[:, None] < 7, np.nan, rehearsal.claim)
    assert "No claim was made in 7 worlds." in keys(shown(claim=claim))[2][2]
    assert "No claim was made" not in keys(shown())[2][2]


# ---- the words -----------------------------------------------------------------------------------


def test_it_is_a_stress_test_and_no_confidence():
    section = text_of(shown().find(".//section"))
    limits = rehearsed_findings().rehearsal.limits
    assert all(sentence in section for sentence in limits)
    for said in ("Rehearsal: a stress test, not a confidence level", *limits):
        section = section.replace(said, "")
    assert "stress test" in section
    assert "confiden" not in section


@pytest.mark.parametrize(
    ("missing", "loud", "why"),
    [
        (NoRehearsal("declined"), "No stress test was made", "None was asked for."),
        (NoRehearsal("to come"), "Not yet stress tested", "The command that made it goes on"),
        (
            NoRehearsal("too much work", 640.0),
            "No stress test was made",
            "about 11 min of one core",
        ),
        (NoRehearsal("impossible", obstacle="it is"), "No stress test", "None is possible: it is."),
        (NoRehearsal("nothing changed"), "No stress test", "so there is nothing to test."),
    ],
)
def test_without_a_rehearsal_the_page_says_why_and_how_to_get_one(missing, loud, why):
    findings = replace(rehearsed_findings(), rehearsal=None, no_rehearsal=missing)
    for section in (rehearsal_section(findings), answer_section(findings)):
        said = text_of(tree(section))
        assert loud in said
        assert why in said
        assert ("Not yet stress tested" in said) == (missing.why == "to come")
    assert "surestep improve --worlds 10 and surestep rehearse." in text_of(
        tree(rehearsal_section(findings))
    )


def calibration(*ranks):
    return Calibration(99, 20, ranks, rehearsed_findings().rehearsal.family)


@pytest.mark.parametrize(
    ("ranks", "mood", "said"),
    [
        ((20, 20, 0, 20, 3), "bad", "No claim survives the stress test"),
        ((20, 20, 4, 20, 7), "caution", "leave number 4: as if δ = 0.04 had been asked for"),
        ((20, 20, 20, 20, 20), "good", "The stress test leaves the claim as it is"),
    ],
)
def test_what_the_calibration_leaves(ranks, mood, said):
    found = box(shown(calibration=calibration(*ranks)))
    assert classes_of(found) == ["box", mood]
    assert said in text_of(found)
    if mood != "good":
        assert "Worlds of the kind “posterior, jeffreys”" in text_of(found)


def test_only_certificates_with_draws_are_calibrated():
    root = shown(calibration=None, calibrated_claim=None)
    assert not [node for node in root.iter("div") if "box" in classes_of(node)]
    assert len(rows_of(root, "power-numbers")[0]) == 6  # one column less


def power(*shares, sizes=(0.5, 1.0, 2.0, 10.0), own_episodes=100, ranks=None):
    """A rehearsal in which a gain is certified in these shares of 10 worlds."""
    claim = np.array([[1.0 if i < 10 * share else -1.0 for share in shares] for i in range(10)])
    return replace(
        rehearsed_findings().rehearsal,
        family=("one",),
        member=np.zeros(10, int),
        sizes=sizes,
        episodes=tuple(round(100 * size) for size in sizes),
        gain=np.ones_like(claim),
        claim=claim,
        calibrated_claim=None,
        calibration=None if ranks is None else calibration(*ranks),
        own_episodes=own_episodes,
    )


@pytest.mark.parametrize(
    ("shares", "changes", "said"),
    [
        (
            (0.1, 0.3, 0.7, 0.9),
            {},
            # from 0.3 to 0.7 half way: √2 times the data
            "With about 42 more episodes you would probably be able to certify an improvement.",
        ),
        (
            (0.1, 0.6, 0.7, 0.9),
            {},
            "The log at hand is enough to certify an improvement in 6 of 10 worlds, without "
            "further data.",
        ),
        (
            (0.6, 0.4, 0.7, 0.9),
            {},
            "The log at hand is enough to certify an improvement in 4 of 10 worlds. Less data was "
            "enough in half of them, so that these worlds are too few to tell how much it takes.",
        ),
        (
            (0.1, 0.1, 0.1, 0.2),
            {},
            "Even ten times the data would not be enough to certify an improvement in half of the "
            "worlds.",
        ),
        (
            (0.1, 0.2),
            {"sizes": (0.5, 1.0)},
            "The data would not be enough to certify an improvement in half of the worlds; no more "
            "was tried.",
        ),
        (
            (0.9, 0.9),
            {"sizes": (0.5, 2.0)},
            "The log at hand is probably enough to certify an improvement.",
        ),
        (
            (0.0, 0.0, 0.0, 1.0),
            {"own_episodes": 1},
            "With about 4 more logs as long as this one you would probably be able to certify an "
            "improvement.",
        ),
        (
            (0.1, 0.1, 0.1, 0.2),
            {"ranks": (0, 1, 1, 1, 1)},
            "How much data it would take to certify an improvement cannot be told: calibrated by "
            "the stress test, no claim of this guarantee is left.",
        ),
        (
            (0.9, 0.9, 0.9, 0.9),
            {"ranks": (0, 1, 1, 1, 1)},
            "How much data it would take to certify an improvement cannot be told: calibrated by "
            "the stress test, no claim of this guarantee is left.",
        ),
    ],
)
def test_how_much_more_data(shares, changes, said):
    rehearsal = power(*shares, **changes)
    assert more_data_words(rehearsal, "believed better") == said
    findings = believed(rehearsal)
    root = tree(rehearsal_section(findings))
    assert said in text_of(root)
    assert said in text_of(tree(answer_section(findings)))
    (curve,) = [node for node in root.iter() if node.get("id") == "power-picture-description"]
    assert said in text_of(curve)


def believed(rehearsal, lower=0.9):
    """Findings whose belief, by data that did not choose the policy, is this."""
    findings = replace(rehearsed_findings(), rehearsal=rehearsal)
    own = findings.certificate
    parameters = own.parameters | {"train_share": 0.3}
    return replace(findings, certificate=replace(own, lower=lower, parameters=parameters))


@pytest.mark.parametrize("shares", [(0.1, 0.3, 0.7, 0.9), (0.1, 0.6, 0.7, 0.9)])
def test_more_data_is_advised_only_where_a_gain_is_believed_and_none_is_proved(shares):
    findings = believed(power(*shares))
    proof = replace(findings.others[0], lower=0.1)
    for other, rung in (
        (findings, "believed better"),
        (believed(findings.rehearsal, lower=-0.01), "not shown to be better"),
        (replace(findings, certificate=proof), "proved better"),
        (replace(findings, changes=()), "nothing changed"),
    ):
        assert other.verdict == rung
        for section in (rehearsal_section(other), answer_section(other)):
            said = "certify an improvement" in text_of(tree(section))
            assert said == (rung == "believed better")


def test_that_more_data_would_not_help_is_said_unless_a_gain_is_proved():
    rehearsal = power(0.1, 0.1, 0.1, 0.2)
    said = "Even ten times the data would not be enough"
    for rung in ("believed better", "not shown to be better"):
        assert more_data_words(rehearsal, rung).startswith(said)
    assert more_data_words(rehearsal, "proved better") is None


def test_the_answer_names_the_harm():
    rehearsal = rehearsed_findings().rehearsal
    harmed = int((rehearsal.gain[:, 0] < 0).sum())
    said = text_of(tree(answer_section(rehearsed_findings())))
    assert f"was worse than the current one in {harmed} of 40 worlds" in said


def test_one_size_makes_no_curve():
    rehearsal = power(0.4, sizes=(2.0,))
    root = tree(rehearsal_section(replace(rehearsed_findings(), rehearsal=rehearsal)))
    assert own_size(rehearsal) == 2.0
    assert root.find(".//*[@id='power-picture-title']") is None
    assert "In each, twice the data was collected." in text_of(root)

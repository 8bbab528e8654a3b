"""Guarantees side by side: every number is that of its certificate, and none hides another."""

import math
import re
from dataclasses import replace

import html5lib
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from surestep.report.html import document
from surestep.report.pages.certificates import (
    certificate_section,
    certificates_section,
    claims_axis,
)
from surestep.report.words.certificates import asked_kind, refusal_reason

from findings import rehearsed_findings
from surestep._words import number, percent, signed

SVG = "{http://www.w3.org/2000/svg}"
DIFFERENCES = st.floats(-1e12, 1e12, allow_nan=False)
EXTREMES = st.sampled_from([0.0, 1e-320, -1e-320, 1e-300, 1e30, -1e30, 1e308, -1e308, -1e-9])


def tree(findings):
    """The section on a page of its own, which must be without any error."""
    page = document("t", [certificates_section(findings)], style="", script="")
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def text_of(node):
    return " ".join("".join(node.itertext()).replace("\u202f", " ").split())


def with_others(findings, *lowers, span=None, **changes):
    """The same findings with claims of these L beside the first one."""
    model = findings.others[0]
    span = model.span if span is None else span
    return replace(
        findings,
        others=tuple(replace(model, lower=lower, span=span, **changes) for lower in lowers),
    )


def rows_of(root):
    body = root.find(".//table[@id='certificates-numbers']/tbody")
    return [[text_of(cell) for cell in row] for row in body]


def test_the_table_holds_the_numbers_of_the_certificates():
    findings = rehearsed_findings()
    claims = (findings.certificate, *findings.others)
    rows = rows_of(tree(findings))
    assert len(rows) == len(claims) == 5
    assert "settled on before the data" in rows[0][0]
    assert not any("settled" in row[0] for row in rows[1:])
    for claim, row in zip(claims[:4], rows[:4], strict=True):
        assert row[0].startswith(claim.kind)
        assert row[1] == claim.standing
        loss = "none" if claim.lower > 0 else number(-claim.lower)
        assert row[2:5] == [signed(claim.lower), loss, number(claim.delta)]
        assert row[6] == ("says nothing" if -claim.lower >= claim.span else "no")
    assert claims[4].kind == "no-claim"
    assert rows[4] == ["trajectory", "–", "–", "–", "–", "–", "refused"]


@pytest.mark.parametrize(
    ("lower", "loss"), [(145.2, "none"), (0.0, "0"), (-145.2, "145.2"), (None, "no claim")]
)
def test_a_claim_of_a_gain_leaves_no_loss_open(lower, loss):
    standing = "none" if lower is None else "posterior"
    claim = replace(rehearsed_findings().certificate, lower=lower, standing=standing)
    findings = replace(rehearsed_findings(), certificate=claim)
    page = document("t", [certificate_section(findings)], style="", script="")
    root = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)
    said = {text_of(name): text_of(value) for name, value in facts_in(root)}
    assert said["Possible loss ζ"] == loss
    assert (said["Guaranteed difference L"] == "no claim") == (lower is None)


def facts_in(root):
    """The names and values of the first list of facts."""
    names, values = (root.find(".//dl").findall(f".//{tag}") for tag in ("dt", "dd"))
    return zip(names, values, strict=True)


def test_main_settings_are_in_the_names():
    names = [row[0] for row in rows_of(tree(rehearsed_findings()))]
    assert names == [
        "posterior, prior weight 5 settled on before the data",
        "robust, interval, strict",
        "robust, l1, strict",
        "a-priori, spibb",
        "trajectory",
    ]


def test_guarantees_of_the_same_name_are_told_apart_by_their_delta():
    findings = rehearsed_findings()
    stricter = replace(findings.certificate, delta=0.04, lower=-0.1)
    names = [row[0] for row in rows_of(tree(replace(findings, others=(stricter,))))]
    assert names[0].startswith("posterior, prior weight 5, δ = 0.2")
    assert names[1] == "posterior, prior weight 5, δ = 0.04"


def test_the_certified_share_of_the_gain():
    findings = rehearsed_findings()
    half = findings.gain / 2
    rows = rows_of(tree(with_others(findings, half, 0.0, -half)))
    assert [row[5] for row in rows[1:]] == [percent(0.5).replace("\u202f", " "), "none", "none"]


def test_one_guarantee_alone_needs_no_comparison():
    assert certificates_section(replace(rehearsed_findings(), others=())) is None


# ---- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "notes", "expected"),
    [
        (
            {"asked": "robust", "refusal": "no range of rewards"},
            (),
            ("robust", "no range of rewards"),
        ),
        ({"refusal": "robust: none"}, (), ("no-claim", "robust: none")),  # no sentence is parsed
        ({}, ("Why: too few.",), ("no-claim", "Why: too few.")),
        ({"refusal": 3}, (), ("no-claim", "no reason was given")),
    ],
)
def test_a_refusal_says_what_was_asked_for_and_why_not(parameters, notes, expected):
    findings = rehearsed_findings()
    refused = replace(findings.others[-1], parameters=parameters, notes=notes)
    assert (asked_kind(refused), refusal_reason(refused)) == expected
    root = tree(replace(findings, others=(refused,)))
    box = text_of(root.find(".//div[@class='box bad']"))
    assert box == f"1 guarantee refused {expected[0]}: {expected[1]}"
    words = [text_of(node) for node in root.iter(f"{SVG}text")]
    assert expected[0] in words
    assert "refused: the reason is below" in words


def test_a_refusal_is_text_whatever_it_looks_like():
    findings = rehearsed_findings()
    refused = replace(findings.others[-1], parameters={"refusal": "<script>alert(1)</script>: x"})
    root = tree(replace(findings, others=(refused,)))
    assert "<script>alert(1)</script>: x" in text_of(root.find(".//div[@class='box bad']"))


# ---- the picture ---------------------------------------------------------------------------------


def classes(root, name):
    return [node for node in root.iter() if name in (node.get("class") or "").split()]


def test_guarantees_that_say_nothing_are_loud():
    root = tree(rehearsed_findings())
    assert len(classes(root, "outline")) == 2
    assert [text_of(node) for node in classes(root, "loss")] == [
        "L = −46.76",
        "says nothing",
        "refused: the reason is below",
    ]


def test_a_bar_begins_at_its_l_as_the_axis_says():
    findings = rehearsed_findings()
    lowers = [findings.certificate.lower, findings.gain / 2, -findings.gain / 3]
    root = tree(with_others(findings, *lowers[1:]))
    strokes = [float(re.match("M([0-9.]+)", node.get("d"))[1]) for node in classes(root, "point")]
    ticks = [node for node in classes(root, "tick") if node.get("x")]
    (first, last) = [
        (float(node.get("x")), float(text_of(node).replace("−", "-"))) for node in ticks[::2][:2]
    ]
    scale = (last[0] - first[0]) / (last[1] - first[1])
    expected = [first[0] + scale * (lower - first[1]) for lower in lowers]
    assert strokes == pytest.approx(expected, abs=0.3)


@given(gain=DIFFERENCES, lowers=st.lists(DIFFERENCES, min_size=1, max_size=6))
def test_what_is_near_0_and_the_gain_can_be_told_apart(gain, lowers):
    findings = with_others(rehearsed_findings(), *lowers, span=1e13)
    axis = claims_axis(gain, findings.others)
    best = max(lowers)
    assert axis.share(0.0) >= 0
    assert 0 <= axis.share(gain) <= 1
    assert 0 <= axis.share(min(lowers, key=abs)) <= 1
    assert axis.share(best) <= 1
    scale = max(abs(gain), min(map(abs, lowers)), best)
    assume(scale > 1e-9)
    # 3 × below 0, 1 × above it, and room: what matters takes a fifth of the picture, or more
    assert scale / (axis.high - axis.low) >= 0.2


@given(
    gain=st.one_of(DIFFERENCES, EXTREMES),
    lowers=st.lists(st.one_of(DIFFERENCES, EXTREMES), min_size=1, max_size=4),
    span=st.one_of(st.floats(0, 1e12), st.sampled_from([0.0, 1e-320, 1e308])),
)
@settings(max_examples=40)
def test_any_numbers_are_drawn_inside_the_picture(gain, lowers, span):
    findings = replace(
        with_others(rehearsed_findings(), *lowers, span=span),
        performance=gain,
        behavior_performance=0.0,
    )
    root = tree(findings)
    for node in root.iter():
        for name in ("x", "y", "width", "height", "d"):
            for found in re.findall("nan|inf|-?[0-9.]+(?:e[-+][0-9]+)?", node.get(name) or ""):
                assert math.isfinite(float(found))
                assert -20 <= float(found) <= 1000
    assert len(rows_of(root)) == len(lowers) + 1


def test_those_who_do_not_see_the_picture_read_the_same():
    root = tree(rehearsed_findings())
    said = text_of(root.find(".//*[@id='certificates-picture-description']"))
    assert "a-priori, spibb: as-published, L = −46.76, says nothing" in said
    assert "trajectory: refused" in said


def test_assumptions_are_there_for_every_claim():
    findings = rehearsed_findings()
    folds = [text_of(node) for node in tree(findings).iter("details")]
    claims = [claim for claim in (findings.certificate, *findings.others) if claim.notes == ()]
    assert len(folds) == 4
    for claim in claims:
        assert any(all(str(each) in fold for each in claim.assumptions) for fold in folds)

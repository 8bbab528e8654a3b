"""The report: valid HTML for any labels, honest words, nothing from elsewhere, always the same."""

import hashlib
import re
from base64 import b64encode
from dataclasses import replace
from functools import cache, lru_cache
from itertools import pairwise

import html5lib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from surestep.report.html import element
from surestep.report.words.verdict import STANDINGS, proof_words

from findings import (
    gridworld_findings,
    maintenance_findings,
    rehearsed_findings,
    with_certificate,
    with_checks,
    with_many_states,
    with_parameters,
    with_words,
    without_changes,
)
from surestep.certificates.ranges import Ranges
from surestep.certificates.standing import BY_EXTENSION
from surestep.model import Statement
from surestep.report.page import SECTIONS, result_page
from surestep.results.findings import DeltaPoint, NWedgePoint

LABELS = st.one_of(
    st.sampled_from(
        [
            "",
            "<script>alert(1)</script>",
            "</td></tr></table><h1>gone",
            "\"' onmouseover=alert(1) x='",
            '=cmd|" /C calc"!A0',
            "\u202eright to left\u2066",
            "nul \x00 and \x1b[31m",
            "line\r\nbreak\ttab",
            "&amp; &lt; &#60; &copy",
            "very long " * 500,
            "\ud800 half",
            "\ufffe\U0010ffff\x85",
            "-->]]><![CDATA[",
        ]
    ),
    st.text(st.characters(), max_size=30),
)


@cache
def machine():
    return maintenance_findings()


@cache
def grid():
    return gridworld_findings()


@lru_cache(16)
def read(page):
    """The tree of a page, which must be without any error; nobody changes it."""
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(page)


def text_of(node):
    return " ".join("".join(node.itertext()).split())


def tags(root):
    """The elements of a page; an empty label is a span of its own instead of an isolated text."""
    return ["bdi" if node.get("class") == "empty" else node.tag for node in root.iter()]


def harmless(findings):
    return with_words(
        findings,
        states=tuple((f"state {s}",) for s in range(6)),
        actions=tuple((f"action {a}",) for a in range(3)),
        state_columns=("condition",),
    )


# ---- any labels ----------------------------------------------------------------------------------


@settings(max_examples=20)
@given(
    st.lists(LABELS, min_size=6, max_size=6, unique=True),
    st.lists(LABELS, min_size=3, max_size=3, unique=True),
    LABELS,
    LABELS,
)
def test_labels_of_any_kind_are_text_and_nothing_else(states, actions, column, name):
    record = machine().record
    hostile = replace(
        with_words(
            machine(),
            states=tuple((text,) for text in states),
            actions=tuple((text,) for text in actions),
            state_columns=(column,),
        ),
        record=replace(record, inputs=(replace(record.inputs[0], name=name),), command=name),
    )
    root = read(result_page(hostile))
    assert tags(root) == plain_tags()
    (body,) = root.find(".//table[@id='situations']").iter("tbody")
    order = [change.state for change in machine().changes]
    order += [s for s in range(6) if s not in order]
    assert [label_in(row[0]) for row in body] == [visible(states[s]) for s in order]
    heading = next(root.find(".//table[@id='situations']").iter("th"))
    assert label_in(heading) == visible(column)


@cache
def plain_tags():
    """The elements of the page with harmless labels."""
    return tags(read(result_page(harmless(machine()))))


def label_in(cell):
    return "".join(cell.itertext())


def visible(text):
    """What a cell shows of a label."""
    if not text:
        return "(empty)"
    shown = "".join(map(visible_character, text))
    return shown if len(shown) <= 120 else shown[:119] + "…"


def visible_character(c):
    code = ord(c)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    lost = 0x80 <= code < 0xA0 or 0xD800 <= code < 0xE000 or 0xFDD0 <= code < 0xFDF0
    return "\ufffd" if lost or code % 0x10000 >= 0xFFFE else c


def test_the_page_is_a_file_of_unicode():
    hostile = with_words(machine(), states=tuple(("\ud800" * s,) for s in range(6)))
    assert result_page(hostile).encode()


# ---- structure -----------------------------------------------------------------------------------


LEAST = {"behavior": "table"}  # that a page must know


def bare():
    """Findings without all that may be missing."""
    return replace(
        machine(),
        n_wedge=None,
        table=replace(machine().table, trusted=None),
        zeta_curves=(),
        n_wedge_curve=(),
        delta_curve=(),
        wanted=(),
        data=machine().data._replace(episodes=None, terminated=None, truncated=None, dropped={}),
        record=replace(machine().record, inputs=(), parameters=LEAST, defaults=()),
    )


def odd():
    """Findings with numbers at the edge of what they may be."""
    return replace(
        grid(),
        n_wedge_curve=(NWedgePoint(0, 100, 0.0, None),),
        delta_curve=(DeltaPoint(0.1, -0.5),),
        behavior_performance=-1.0,
    )


VARIANTS = {
    "machine": machine,
    "grid": grid,
    "estimated": lambda: maintenance_findings(estimated=True),
    "unchanged": lambda: without_changes(machine()),
    "bare": bare,
    "odd": odd,
    "no span": lambda: with_certificate(machine(), span=0.0, lower=0.0),
    "gain": lambda: with_certificate(grid(), lower=0.1, notes=("A remark.",)),
    "many": lambda: with_many_states(grid(), 300),
    "rehearsed": rehearsed_findings,
}


@cache
def variant_tree(name):
    return read(result_page(VARIANTS[name]()))


@pytest.mark.parametrize("name", list(VARIANTS))
def test_structure(name):
    root = variant_tree(name)
    (heading,) = root.iter("h1")
    assert text_of(heading)
    levels = [int(node.tag[1]) for node in root.iter() if re.fullmatch("h[1-6]", str(node.tag))]
    assert levels[0] == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    identities = [node.get("id") for node in root.iter() if node.get("id")]
    assert len(identities) == len(set(identities))
    for node in root.iter():
        for name in ("aria-labelledby", "data-table"):
            assert set((node.get(name) or "").split()) <= set(identities)
        if node.get("href"):
            assert node.get("href")[1:] in identities
    links = [text_of(link) for link in root.find(".//nav").iter("a")]
    assert all(links)
    assert len(links) == len(list(root.iter("section")))


@pytest.mark.parametrize("name", list(VARIANTS))
def test_every_picture_has_a_text_and_every_control_a_label(name):
    root = variant_tree(name)
    pictures = list(root.iter("{http://www.w3.org/2000/svg}svg"))
    assert pictures
    for picture in pictures:
        if picture.get("aria-hidden") == "true":
            continue
        assert picture.get("role") == "img"
        title, description = picture.get("aria-labelledby").split()
        assert text_of(picture.find(f".//*[@id='{title}']"))
        assert text_of(picture.find(f".//*[@id='{description}']"))
    labelled = {label.get("for") for label in root.iter("label") if text_of(label)}
    controls = [node for node in root.iter() if node.tag in ("input", "select", "textarea")]
    assert controls
    assert all(control.get("id") in labelled for control in controls)
    for table in root.iter("table"):
        assert text_of(table.find("caption"))
        assert all(heading.get("scope") == "col" for heading in table.iter("th"))


def test_every_state_column_is_a_column():
    root = read(result_page(grid()))
    for identity in ("situations", "thin", "wanted-pairs"):
        headings = [text_of(th) for th in root.find(f".//table[@id='{identity}']").iter("th")]
        assert headings[:2] == ["column", "row"]


# ---- nothing from elsewhere ----------------------------------------------------------------------


@pytest.mark.parametrize("name", list(VARIANTS))
def test_nothing_is_loaded_and_the_policy_allows_only_its_own_style_and_script(name):
    root = variant_tree(name)
    allowed = {"href", "class", "id", "d"}
    for node in root.iter():
        assert node.tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        for name, value in node.attrib.items():
            assert not str(name).startswith("on")
            assert name not in ("src", "style")
            assert name in allowed or "//" not in value
    style, script = root.find(".//style").text, root.find(".//script").text
    assert "url(" not in style
    assert "@import" not in style
    assert "http" not in style + script
    (policy,) = [
        node.get("content")
        for node in root.iter("meta")
        if node.get("http-equiv") == "Content-Security-Policy"
    ]
    for kind, content in (("style", style), ("script", script)):
        print_of_it = b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{print_of_it}';" in policy
    assert policy.startswith("default-src 'none';")
    assert len(list(root.iter("style"))) == len(list(root.iter("script"))) == 1


def test_the_same_findings_make_the_same_page():
    assert result_page(machine()) == result_page(maintenance_findings())
    again = rehearsed_findings.__wrapped__()
    assert result_page(rehearsed_findings()) == result_page(again)


def situations(page):
    (body,) = read(page).find(".//table[@id='situations']").iter("tbody")
    return list(body)


def test_every_change_is_on_the_page():
    page = result_page(with_many_states(grid(), 1154))
    rows = situations(page)
    assert [row.get("data-group") for row in rows] == ["changed"] * 577
    pictured = [any(node.tag.endswith("svg") for node in row.iter()) for row in rows]
    assert pictured == [True] * 250 + [False] * 327
    assert "Every changed situation is here." in text_of(section_of(read(page), "changes"))
    for row in (rows[249], rows[-1]):  # with pictures or without, all actions are there
        moves = text_of(row.findall("td")[2])
        assert moves.count("→") == 4
        assert all(action in moves for action in ("north", "east", "south", "west"))


@pytest.mark.slow
def test_a_page_of_a_hundred_thousand_pairs_stays_small(monkeypatch):
    monkeypatch.setattr("surestep.report.pages.changes.MOST_CHANGES", 600)
    many = with_many_states(grid(), 25_000, label_length=100)
    page = result_page(many)
    assert len(page.encode()) < 1_500_000
    assert len(situations(page)) == 600
    said = text_of(section_of(read(page), "changes"))
    assert "Only 600 of 25,000 situations are listed" in said
    assert "11,900 changed situations" in said
    assert "policy.csv" in said


def test_gains_are_written_as_people_write_them():
    findings = with_many_states(grid(), 40)
    shares = [1.2e-2 / 7**i for i in range(20)]  # down to 1e-18
    changes = tuple(
        change._replace(contribution=share, advantage=1000 * share)
        for change, share in zip(findings.changes, shares, strict=True)
    )
    root = read(result_page(replace(findings, changes=changes)))
    written = [
        text_of(row.findall("td")[5]).strip() for row in root.iter("tr") if row.get("data-group")
    ]
    assert written[:5] == ["+0.0120", "+0.0017", "+0.0002", "< 0.0001", "< 0.0001"]
    tiny = tuple(change._replace(contribution=change.contribution * 1e-9) for change in changes)
    root = read(result_page(replace(findings, changes=tiny)))
    headings = [text_of(each) for each in root.find(".//table[@id='situations']").iter("th")]
    assert "Share in the gain (in 10⁻¹²)" in headings
    assert "+12.0 of" in text_of(section_of(root, "top"))


def test_paper_has_the_report_in_short_and_says_so():
    root = read(result_page(rehearsed_findings()))
    printed = [
        section.get("id")
        for section in root.iter("section")
        if section.get("data-off-paper") is None
    ]
    assert printed == ["answer", "top", "certificate", "rehearsal"]
    (ending,) = [each for each in root.iter("p") if each.get("class") == "paper ending"]
    for section in root.iter("section"):
        heading = section.find("h2").text if section.find("h2") is not None else "Words used here"
        assert (f"“{heading}”" in text_of(ending)) == (section.get("id") not in printed)


# ---- words ---------------------------------------------------------------------------------------


def section_of(root, identity):
    return root.find(f".//section[@id='{identity}']")


def section(findings, identity):
    return text_of(section_of(read(result_page(findings)), identity))


def test_sections_are_called_by_their_ids_and_stand_in_their_order():
    everything = replace(with_checks(rehearsed_findings()), zeta_curves=machine().zeta_curves)
    found = [node.get("id") for node in read(result_page(everything)).iter("section")]
    assert found == list(SECTIONS)


def test_a_section_more_is_a_function_and_a_line(monkeypatch):
    def weather(findings):
        words = f"{len(findings.changes)} changes, and rain."
        return element("section", element("h2", "The weather"), element("p", words), id="weather")

    monkeypatch.setitem(SECTIONS, "weather", weather)
    root = read(result_page(machine()))
    assert "5 changes, and rain." in text_of(section_of(root, "weather"))
    links = [(link.get("href"), text_of(link)) for link in root.find(".//nav").iter("a")]
    assert links[-1] == ("#weather", "The weather")
    monkeypatch.setitem(SECTIONS, "weather", lambda findings: None)  # where there is none
    assert "weather" not in result_page(machine()).lower()


def plain(text):
    """Without the narrow spaces of the page."""
    return text.replace("\u202f", " ")


def test_the_answer_comes_first():
    said = plain(section(machine(), "answer"))
    assert "In 5 of 6 situations the new policy does something else." in said
    assert "Estimated gain +2,867" in said
    assert "Estimated by the same data that chose the policy, which flatter it." in said
    first = next(iter(read(result_page(machine())).iter("section")))
    assert first.get("id") == "answer"


def test_the_estimate_of_data_that_did_not_choose_is_shown_with_its_interval():
    findings = machine()
    held_out = {"held_out_gain": 2500.0, "held_out_low": 2100.0, "held_out_high": 2900.0}
    estimates = {**findings.record.estimates, **held_out}
    record = replace(findings.record, estimates=estimates)
    for place in ("answer", "certificate"):
        said = plain(section(replace(findings, record=record), place))
        assert (
            "Between +2,100 and +2,900 (about 90 %), estimated by the part of the log that" in said
        )
        assert "flatter" not in said
    assert "Estimated gain +2,500" in plain(section(replace(findings, record=record), "answer"))


def test_a_guarantee_that_says_nothing_is_called_so():
    assert machine().certificate.says_nothing
    for identity in ("answer", "certificate"):
        assert "This guarantee says nothing" in section(machine(), identity)
    said = section(machine(), "answer")
    assert "ζ = 4,571,743, while no two policies can differ by more than 30,000 here" in said
    assert "What it would take: the first of the published bounds to say anything" in said
    assert "confidence" not in said.split("Before you rely on it")[0]


@pytest.mark.parametrize("lower", [-0.999, -0.5, 0.0, 0.1])
def test_a_guarantee_that_says_something_is_not_called_empty(lower):
    page = result_page(with_certificate(grid(), lower=lower))
    assert "This guarantee says nothing" not in page


def test_a_proved_gain_and_one_that_is_only_claimed():
    proved = with_certificate(grid(), lower=0.11, standing="proved")
    said = plain(section(proved, "answer"))
    assert "Proved better, with confidence 90 %, if its assumptions hold" in said
    assert "gains at least 0.11" in said
    assert 'class="box good verdict"' in result_page(proved)
    for standing in ("as-published", "asymptotic", "posterior"):
        claimed = with_certificate(grid(), lower=0.11, standing=standing)
        said = plain(section(claimed, "answer"))
        assert "Not shown to be better: what is claimed is not proved" in said
        assert "gains at least 0.11" in said
        assert 'class="box good' not in result_page(claimed)


def test_a_belief_from_held_out_data_never_looks_like_a_proof():
    belief = replace(
        grid().certificate,
        kind="posterior",
        standing="posterior",
        lower=0.2,
        parameters={"train_share": 0.4},
    )
    held = replace(with_certificate(grid(), lower=-0.5, standing="proved"), others=(belief,))
    said = plain(section(held, "answer"))
    assert "Believed better, not proved" in said
    assert "gains at least 0.2" in said
    assert "it loses at most 0.5 an episode; its standing is proved" in said
    assert "was not measured: there was no stress test" in said
    assert 'class="box good' not in result_page(held)


def test_a_limited_loss_is_no_gain():
    said = plain(section(with_certificate(grid(), lower=-0.25), "answer"))
    assert "Not shown to be better: with confidence 90 %, it loses at most 0.25" in said


def test_no_claim_gives_the_reason():
    findings = with_certificate(
        grid(),
        kind="no-claim",
        standing="none",
        lower=None,
        notes=("the policy changes <b>state 3</b>",),
    )
    for identity in ("answer", "certificate"):
        said = section(findings, identity)
        assert "No guarantee covers this policy" in said
        assert "the policy changes <b>state 3</b>" in said
        assert "This guarantee says nothing" not in said
    assert "there is no claim" in said
    assert re.search("Guaranteed difference L\\s*no claim", said)


def test_nothing_changes():
    said = section(with_certificate(without_changes(machine()), lower=0.0), "answer")
    assert "does the same as the current one in all 6 situations" in said
    assert "The new policy is the old one" in said


@pytest.mark.parametrize("standing", [each for each in STANDINGS if each != "none"])
def test_standing_and_assumptions_stand_beside_the_claim(standing):
    own = {"kind": "toy", "standing": "proved"} if standing == BY_EXTENSION else {}
    findings = with_certificate(grid(), **{"standing": standing} | own, lower=0.1)
    name = "by extension" if own else standing
    for identity in ("answer", "certificate"):
        said = section(findings, identity)
        assert f"{name}, that is, {STANDINGS[standing]}" in said
        assert all(str(each) in said for each in grid().certificate.assumptions)


def test_what_is_believed_by_extension_is_not_called_a_posterior():
    findings = rehearsed_findings()
    claim = replace(
        findings.certificate,
        kind="toy",
        standing=BY_EXTENSION,
        lower=0.1,
        assumptions=("The estimate is the truth.",),
        parameters={"train_share": 0.5},
    )
    own = replace(findings, certificate=claim, others=(), rehearsal=None)
    said = section(own, "answer")
    assert "Believed better" in said
    assert "The claim is by extension, that is, its kind is not built in" in said
    assert "so says a certificate of the kind “toy”, by extension, of that part of the data" in said
    assert "posterior" not in said
    assert "(a prior)" not in said


def test_a_chosen_n_wedge_has_no_guarantee():
    sentence = "N∧ = 20 is a hyper-parameter without a guarantee"
    assert sentence in section(grid(), "answer")
    assert sentence not in result_page(with_parameters(grid(), zeta=0.1))
    chosen = section(with_parameters(grid(), n_wedge_chosen_by="posterior"), "answer")
    assert sentence not in chosen
    assert "N∧ = 20 was chosen from the data, by the lower bound of a posterior" in chosen


def test_a_provable_policy_was_chosen_for_so_many_rounds():
    settings = {"algorithm": "provable", "rounds": 20, "price": 1}
    findings = with_parameters(grid(), algorithm=settings, n_wedge_chosen_by="stitched")
    said = section(replace(findings, n_wedge=None), "answer")
    assert "the best one whose course as many data again could follow 20 times" in said


@pytest.mark.parametrize(
    ("episodes", "words"),
    [
        (14_321, "About 14,000 episodes like these should make it a proof; the log has 300."),
        (300, "A proof was within reach: another log of this size may give one."),
        (None, "More episodes like these alone would not make it a proof."),
    ],
)
def test_what_would_make_it_a_proof_is_said(episodes, words):
    record = grid().record
    data = {**record.data, "episodes": 300}
    told = replace(record, data=data, estimates={"episodes_for_proof": episodes})
    seen = Ranges((0.0, 0.0), (0.0, 1.0)).statement(declared=False)
    for assumed, ranges in ((Statement("markov"), False), (seen, True)):
        certificate = replace(grid().certificate, assumptions=(assumed,))
        said = section(replace(grid(), record=told, certificate=certificate), "answer")
        assert words in said
        assert ("ranges of what whole episodes return" in said) == ranges
        # Nothing comforts where the rest of the log estimates a loss, or nothing is claimed.
        lost = replace(told, estimates={**told.estimates, "held_out_gain": -0.28})
        assert proof_words(lost, certificate) is None
        refused = replace(certificate, lower=None, standing="none")
        assert proof_words(told, refused) is None
    assert "episodes like these" not in section(grid(), "answer")


def test_an_n_wedge_at_which_nothing_changes_is_no_permission_to_change():
    findings = with_parameters(grid(), n_wedge_chosen_by="posterior")
    said = section(replace(findings, changes=()), "answer")
    assert "of all N∧, one at which nothing changes (20) was chosen from the data" in said
    assert "known well enough to be changed" not in said
    assert "known well enough to be changed" in section(findings, "answer")


def test_a_belief_about_a_bold_policy_is_doubted():
    belief = replace(grid().certificate, standing="posterior")
    bold = replace(grid(), certificate=belief, n_wedge=None)
    assert "can be far too sure" in section(bold, "answer")
    assert "can be far too sure" not in section(replace(bold, n_wedge=20), "answer")
    assert "can be far too sure" not in section(replace(grid(), n_wedge=None), "answer")


def test_an_estimated_behavior_policy_is_marked_everywhere():
    findings = maintenance_findings(estimated=True)
    assert "it was estimated from the log" in section(findings, "answer")
    for identity in ("changes", "top", "certificate"):
        assert "current policy estimated" in section(findings, identity)
        assert "current policy estimated" not in section(machine(), identity)
    assert "before: estimated" in section(findings, "changes")
    assert "only estimated" in section(findings, "certificate")


def test_the_ten_changes_with_the_largest_share_in_the_gain():
    cards = list(read(result_page(with_many_states(grid(), 60))).find(".//ol[@class='changes']"))
    assert len(cards) == 10
    said = [
        plain(text_of(card))
        for card in read(result_page(machine())).find(".//ol[@class='changes']")
    ]
    assert [words.split()[1] for words in said] == ["new", "good", "fair", "worn", "failing"]
    assert "+1,667 of +2,867" in said[0]


def test_bars_of_visits_count_every_pair_once():
    for findings in (machine(), grid(), with_many_states(grid(), 500)):
        table = read(result_page(findings)).find(".//table[@id='visits-numbers']")
        counts = [int(text_of(row[1]).replace(",", "")) for row in table.find("tbody")]
        assert sum(counts) == findings.table.pairs.num_pairs
        assert counts[0] == np.count_nonzero(findings.table.visits == 0)


@pytest.mark.parametrize("n_wedge", [None, 0, 20, 10**6])
def test_blue_bars_hold_what_is_trusted(n_wedge):
    table = machine().table
    root = read(result_page(replace(machine(), n_wedge=n_wedge)))
    bars = [bar for bar in section_of(root, "data").iter() if "bar" in bar.get("class", "").split()]
    names = section_of(root, "data").find(".//table[@id='visits-numbers']/tbody")
    counts = [int(text_of(row[1]).replace(",", "")) for row in names]
    blue = sum(
        many
        for bar, many in zip(bars, counts, strict=True)
        if "tone-blue" in bar.get("class").split()
    )
    assert blue == np.count_nonzero(table.visits > (n_wedge or 0))


def test_settings_that_nobody_gave_are_marked():
    entries = {
        text_of(entry[0]): text_of(entry[1])
        for entry in read(result_page(machine())).find(".//section[@id='repeat']").iter("div")
        if len(entry) == 2 and entry[0].tag == "dt"
    }
    assert entries["delta"] == "0.1 default"
    assert entries["discount"] == "0.98"
    assert entries["algorithm"] == "algorithm = spibb, n_wedge = 20"

"""The report in a real browser: it renders, sorts, searches, prints, and asks nobody else."""

import re
import shutil
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

import surestep
from support.claims import failing
from support.findings import (
    gridworld_findings,
    maintenance_findings,
    rehearsed_findings,
    with_certificate,
    with_checks,
    with_many_columns,
    with_many_states,
    with_words,
)
from surestep.checks import CHECKS
from surestep.report.result import rehearsal_page, result_page

CHROMIUM = shutil.which("chromium")
NAMES = ("grid", "machine", "proved", "hundreds", "hostile", "rehearsed", "extreme", "alarming")
UNFOLD = "document.querySelectorAll('details').forEach(fold => { fold.open = true; })"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt install chromium)"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Files of reports by name."""
    folder = tmp_path_factory.mktemp("reports")
    grid, rehearsed = gridworld_findings(), rehearsed_findings()
    made = {
        "grid": grid,
        "machine": maintenance_findings(estimated=True),
        "proved": with_certificate(maintenance_findings(), standing="proved", lower=123.0),
        "hundreds": with_many_states(grid, 1154),
        "alarming": alarming_findings(),
        "rehearsed": rehearsed,
        "extreme": extreme_findings(),
        "hostile": with_words(
            grid,
            states=tuple(
                ("<img src=x onerror=alert(1)>" * 9, f"\u202e<script>alert({s})</script>")
                for s in range(25)
            ),
            actions=(("x" * 400,), ("",), ('"><svg onload=alert(1)>',), ("\x00",)),
        ),
    }
    texts = {name: result_page(findings) for name, findings in made.items()}
    texts["ruled"] = ruled_report()
    for name, text in {**texts, "rehearsal": rehearsal_page(rehearsed)}.items():
        (folder / f"{name}.html").write_text(text, "utf-8")
    return {path.stem: path.as_uri() for path in folder.iterdir()}


def ruled_report():
    """Returns the page of a result with rules, groups, several signals and totals."""
    rng = np.random.default_rng(0)
    rows = 3_000
    severe, age, sex, treat = (rng.integers(0, n, rows) for n in (2, 3, 2, 2))
    healed = rng.random(rows) < np.where(treat == severe, 0.8, 0.3)
    log = {
        "condition": [("mild", "severe")[i] for i in severe],
        "age": [("young", "grown", "old")[i] for i in age],
        "sex": [("f", "m")[i] for i in sex],
        "action": [("wait", "treat")[i] for i in treat],
        "healed": healed.astype(float).tolist(),
        "cost": (10.0 * treat).tolist(),
    }
    cost = {"column": "cost", "cost": True, "ending": (0, 10), "not_worse_by": 5}
    healing = {"column": "healed", "ending": (0, 1), "per": 100}
    return surestep.improve(
        log,
        columns={"state": ["condition", "age"]},
        about={"title": "A clinic", "population": "all patients", "period": "2024"},
        discount=0,
        signals={"healed": healing, "cost": cost},
        groups={"columns": ["sex", "age"]},
        worlds=0,
    ).report


# These only caution, or are of logs with a structure, whose page has other parts.
NEVER_FAIL = ("tied-times", "running-cases", "structure", "blind-structure", "claim-above-guess")


def alarming_findings():
    """Findings in which every check fails that can, and states of many columns."""
    findings = with_checks(with_many_columns(gridworld_findings()), "a state of a long name, " * 5)
    others = tuple(
        failing(code)
        for code in CHECKS
        if code not in {*NEVER_FAIL, *(check.code for check in findings.record.checks)}
    )
    return replace(
        findings, record=replace(findings.record, checks=(*findings.record.checks, *others))
    )


def extreme_findings():
    """Findings with long names, a long refusal, and numbers of all sizes."""
    findings = rehearsed_findings()
    first, *others = findings.certificates
    refusal = f"robust: {'x' * 300} and {'reasons ' * 60}"
    published = {"kind": "trajectory", "standing": "as-published", "lower": -1.2345678e30}
    return replace(
        findings,
        certificates=(
            replace(first, lower=findings.estimated_gain * 0.99),
            *others,
            replace(others[0], lower=findings.estimated_gain),
            replace(others[0], **published, parameters={"interval": "bernstein"}),
            replace(others[-1], parameters={"refusal": refusal}),
        ),
        rehearsal=replace(
            findings.rehearsal, family=("kind " * 50, "unseen: mean, " * 20, "a", "b", "c")
        ),
    )


def column(page, number):
    """The texts of a column of the table of situations, as far as they are shown."""
    cells = page.locator(f"#situations tbody tr:visible td:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


def numbers(page, number):
    return [int(text.replace(",", "")) for text in column(page, number)]


@pytest.mark.parametrize("width", [360, 800, 1400])
@pytest.mark.parametrize("name", [*NAMES, "rehearsal"])
def test_it_renders_and_is_no_wider_than_its_screen(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 700})
    assert page.locator("h1").is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for fold in page.locator("main > details > summary").all():
        fold.click()
        assert fold.evaluate("node => node.parentElement.open")
    page.evaluate(UNFOLD)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for picture in page.locator("svg[role=img]").all():
        box = picture.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 50


def test_rows_sort_both_ways_and_what_is_missing_comes_last(visit):
    page = visit("grid")
    page.locator("#changes summary").click()
    heading = page.locator("#situations th", has_text="Seen in the log")
    button = heading.get_by_role("button")
    button.click()
    assert heading.get_attribute("aria-sort") == "descending"
    down = numbers(page, 5)
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 5
    button.press("Enter")  # the keyboard will do
    assert heading.get_attribute("aria-sort") == "ascending"
    assert numbers(page, 5) == sorted(down)
    assert page.locator("#situations [aria-sort]").count() == 1
    button = page.locator("#situations th", has_text="Share in the gain").get_by_role("button")
    for _ in range(2):
        button.click()
        assert column(page, 7).index("–") == 7
        assert {*column(page, 7)[7:]} == {"–"}
    page.locator("#situations th", has_text="column").get_by_role("button").click()
    assert column(page, 1) == sorted(column(page, 1))


def test_rows_are_shown_in_steps_and_every_one_can_be_found(visit):
    page = visit("hundreds")
    page.locator("#changes summary").click()
    search = page.locator("#changes .filter input")
    more = page.locator("#changes .filter button")
    assert len(column(page, 1)) == 100
    assert page.locator("#changes [role=status]").inner_text() == "100 of 577 rows"
    search.fill("1153")
    assert column(page, 1) == ["1153".rjust(20, "x")]
    search.fill("no such thing")
    assert column(page, 1) == []
    search.fill("")
    page.locator("#situations th", has_text="Seen in the log").get_by_role("button").click()
    first = numbers(page, 5)
    more.click()
    assert len(column(page, 1)) == 577
    assert more.is_hidden()
    assert first == sorted(numbers(page, 5), reverse=True)[:100]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", NAMES)
def test_text_stands_out_in_both_themes(visit, scheme, name):
    page = visit(name, color_scheme=scheme)
    page.evaluate(UNFOLD)
    paper, card = (
        luminance(page.locator(place).first, "backgroundColor") for place in ("body", ".key")
    )
    assert (paper < 0.1) == (scheme == "dark")
    for place in (
        "h1",
        "p",
        ".aside",
        ".sign",
        ".item .title",
        "figcaption",
        "summary",
        "th",
        "dt",
    ):
        for node in page.locator(place).all()[:20]:
            assert contrast(paper, luminance(node, "color")) >= 4.5, place
    for node in page.locator(".key p").all():
        assert contrast(card, luminance(node, "color")) >= 4.5
    for node in page.locator(".picture text").all()[:20]:
        assert contrast(paper, luminance(node, "fill")) >= 4.5


def luminance(node, style):
    """WCAG's relative luminance of a colour of a node."""
    colour = node.evaluate(f"node => getComputedStyle(node).{style}")
    parts = [int(part) / 255 for part in re.findall(r"\d+", colour)[:3]]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.parametrize("name", ["grid", "rehearsed", "extreme", "alarming"])
@pytest.mark.parametrize("width", [360, 390, 1200])
def test_words_in_pictures_can_be_read(visit, name, width):
    """They are large enough, do not run into each other, and stay on the page."""
    page = visit(name, viewport={"width": width, "height": 700})
    page.evaluate(UNFOLD)
    pictures = page.evaluate(
        "[...document.querySelectorAll('svg.picture')].map("
        " picture => [...picture.querySelectorAll('text')].filter(t => t.textContent).map(t => {"
        " const box = t.getBoundingClientRect(), size = parseFloat(getComputedStyle(t).fontSize);"
        " return [t.textContent, box.left, box.right, box.top, box.bottom,"
        "         size * picture.getBoundingClientRect().width / 680]; }))"
    )
    assert len(pictures) >= 2
    for words in pictures:
        for text, left, right, _, _, size in words:
            assert 0 <= left < right <= width, text
            assert size >= (9.5 if width < 400 else 8), text
        for one, other in combinations(words, 2):
            apart = max(one[1], other[1]) >= min(one[2], other[2]) - 1
            # lines of text may touch: a box is higher than its letters
            above = max(one[3], other[3]) >= min(one[4], other[4]) - 0.3 * (one[4] - one[3])
            assert apart or above, (one, other)


@pytest.mark.parametrize(("width", "height", "screens"), [(1280, 1024, 2), (390, 844, 3)])
@pytest.mark.parametrize("name", ["ruled", "grid", "proved", "rehearsed"])
def test_the_answer_takes_two_screens_of_a_desk_and_three_of_a_phone(
    visit, name, width, height, screens
):
    page = visit(name, viewport={"width": width, "height": height})
    end = page.evaluate("document.querySelector('#answer').getBoundingClientRect().bottom")
    assert end <= screens * height


def test_rules_groups_and_signals_fit_on_one_printed_page(visit):
    page = visit("ruled", viewport={"width": 700, "height": 900})
    assert page.locator("#rules").is_visible()
    assert page.locator("#groups svg").is_visible()
    assert len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(format="A4"))) == 1


def test_a_small_table_is_not_clipped_on_a_phone(visit):
    page = visit("ruled", viewport={"width": 390, "height": 844})
    frame = page.locator("#every .frame")
    assert frame.evaluate("frame => frame.scrollWidth - frame.clientWidth") <= 0
    assert "Has to be" in frame.evaluate(
        "frame => [...frame.querySelectorAll('td')]"
        ".map(td => getComputedStyle(td, '::before').content).join()"
    )


def test_everything_is_there_without_javascript(visit):
    page = visit("grid", java_script_enabled=False)
    page.locator("#changes summary").click()
    assert len(column(page, 1)) == 25
    assert page.locator(".filter").count() == 0
    assert page.locator("#situations th button").count() == 0


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize("name", NAMES)
def test_the_answer_alone_is_printed_on_two_white_pages(visit, name, paper):
    page = visit(name, color_scheme="dark", viewport={"width": 700, "height": 900})
    assert 1 <= len(re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(format=paper))) <= 2
    page.emulate_media(media="print")
    assert luminance(page.locator("body"), "backgroundColor") == pytest.approx(1)
    assert page.locator("#data").is_hidden()
    assert page.locator(".paper").is_visible()
    assert page.evaluate("document.querySelector('main').getBoundingClientRect().right") <= 700

"""The report in a real browser: it renders, sorts, filters, prints, and asks nobody else."""

import re
import shutil
from dataclasses import replace
from itertools import combinations

import pytest

from findings import (
    gridworld_findings,
    maintenance_findings,
    rehearsed_findings,
    with_checks,
    with_many_states,
    with_words,
)
from surestep.checks import CHECKS, Check
from surestep.report.page import result_page

CHROMIUM = shutil.which("chromium")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt install chromium)"),
]


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Files of reports by name."""
    folder = tmp_path_factory.mktemp("reports")
    grid = gridworld_findings()
    made = {
        "grid": grid,
        "machine": maintenance_findings(estimated=True),
        "many": with_many_states(grid, 25_000, label_length=100),
        "hundreds": with_many_states(grid, 1154),
        "alarming": alarming_findings(),
        "rehearsed": rehearsed_findings(),
        "checked": with_checks(grid, "a state of a long name, " * 5),
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
    for name, findings in made.items():
        (folder / f"{name}.html").write_text(result_page(findings), "utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


def alarming_findings():
    """Findings in which every check fails, and states of many columns."""
    findings = gridworld_findings()
    columns = tuple(f"measurement number {i}" for i in range(20))
    states = tuple(tuple(f"value {s} of {name}" for name in columns) for s in range(25))
    findings = with_words(findings, state_columns=columns, states=states)
    findings = with_checks(findings)
    others = tuple(
        Check(code=code, outcome="failed", figures=dict.fromkeys(kind.figures, 17.0))
        for code, kind in CHECKS.items()
        if code not in {check.code for check in findings.record.checks}
    )
    return replace(
        findings, record=replace(findings.record, checks=(*findings.record.checks, *others))
    )


def extreme_findings():
    """Findings with long names, a long refusal, and numbers of all sizes."""
    findings = rehearsed_findings()
    refusal = f"robust: {'x' * 300} and {'reasons ' * 60}"
    return replace(
        findings,
        others=(
            *findings.others,
            replace(findings.others[0], lower=findings.gain),
            replace(
                findings.others[0],
                kind="trajectory",
                standing="as-published",
                parameters={"interval": "empirical-bernstein"},
                lower=-1.2345678e30,
            ),
            replace(findings.others[-1], parameters={"refusal": refusal}),
        ),
        certificate=replace(findings.certificate, lower=findings.gain * 0.99),
        rehearsal=replace(
            findings.rehearsal, family=("kind " * 50, "unseen: mean, " * 20, "a", "b", "c")
        ),
    )


def column(page, number):
    """The texts of a column of the table of situations, as far as they are shown."""
    cells = page.locator(f"#situations tbody tr:visible td:nth-child({number})")
    return [text.strip() for text in cells.all_inner_texts()]


@pytest.mark.parametrize("name", ["grid", "machine", "many", "hostile"])
def test_it_renders(visit, name):
    page = visit(name)
    assert page.title() == "Policy improvement report"
    assert page.locator("h1").is_visible()
    assert page.locator("text=This guarantee says nothing").first.is_visible()
    for picture in page.locator("svg[role=img]").all():
        box = picture.bounding_box()
        assert box["width"] > 200
        assert box["height"] > 50


def test_numbers_sort_both_ways_and_say_so(visit):
    page = visit("grid")
    heading = page.locator("#situations th", has_text="Seen in the log")
    button = heading.get_by_role("button")
    button.click()
    assert heading.get_attribute("aria-sort") == "descending"
    down = [int(text.replace(",", "")) for text in column(page, 7)]
    assert down == sorted(down, reverse=True)
    assert len(set(down)) > 5
    button.press("Enter")  # the keyboard will do
    assert heading.get_attribute("aria-sort") == "ascending"
    assert [int(text.replace(",", "")) for text in column(page, 7)] == sorted(down)
    assert page.locator("#situations [aria-sort]").count() == 1


def test_numbers_that_are_missing_come_last_either_way(visit):
    page = visit("grid")
    button = page.locator("#situations th", has_text="Share in the gain").get_by_role("button")
    for _ in range(2):
        button.click()
        shown = column(page, 6)
        assert shown[:7].count("–") == 0
        assert shown[7:] == ["–"] * 18


def test_words_sort(visit):
    page = visit("machine")
    page.locator("#situations th", has_text="condition").get_by_role("button").click()
    shown = column(page, 1)
    assert shown == sorted(shown)
    assert len(shown) == 6


def test_rows_are_filtered_by_words_and_by_group(visit):
    page = visit("machine")
    search, group = page.get_by_label("Find a situation"), page.get_by_label("Show", exact=True)
    search.fill("WORN")
    assert column(page, 1) == ["worn"]
    assert page.get_by_role("status").inner_text() == "1 of 6 rows shown"
    search.fill("no such thing")
    assert column(page, 1) == []
    search.fill("")
    group.select_option("kept")
    assert column(page, 1) == ["broken"]
    group.select_option("changed")
    assert sorted(column(page, 1)) == ["failing", "fair", "good", "new", "worn"]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["grid", "hostile", "rehearsed", "checked"])
def test_text_stands_out_in_both_themes(visit, scheme, name):
    page = visit(name, color_scheme=scheme)
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    assert dark == (scheme == "dark")
    paper = luminance(page, "body", "backgroundColor")
    assert (paper < 0.1) == dark
    places = [
        "h1",
        ".lead",
        ".aside",
        ".check.failed .sign",
        ".check.passed .sign",
        ".stands",
        "figcaption",
        "a",
        "td .nothing",
        ".key.bad .value",
    ]
    for place in (*places, ".tick", "text.loss", "text.note"):
        if page.locator(place).count():
            style = "color" if place in places else "fill"
            assert contrast(paper, luminance(page, place, style)) >= 4.5, place
    for box in page.locator(".box").all():
        wash = relative_luminance(box.evaluate("node => getComputedStyle(node).backgroundColor"))
        for part in (".loud", "p"):
            words = box.locator(part).first
            if words.count():
                ink = words.evaluate("node => getComputedStyle(node).color")
                assert contrast(wash, relative_luminance(ink)) >= 4.5


def luminance(page, place, style):
    node = page.locator(place).first
    return relative_luminance(node.evaluate(f"node => getComputedStyle(node).{style}"))


def relative_luminance(colour):
    """WCAG's relative luminance of a colour like rgb(1, 2, 3)."""
    parts = [int(part) / 255 for part in colour[colour.index("(") + 1 : -1].split(",")[:3]]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)


@pytest.mark.parametrize(
    "name", ["grid", "machine", "many", "hostile", "rehearsed", "extreme", "checked"]
)
@pytest.mark.parametrize("width", [360, 800, 1400])
def test_no_page_is_wider_than_its_screen(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 700})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("name", ["grid", "rehearsed", "checked"])
def test_letters_in_pictures_are_large_enough_on_a_phone(visit, name):
    page = visit(name, viewport={"width": 360, "height": 700})
    heights = page.evaluate(
        "[...document.querySelectorAll('svg.picture text')].map(t => {"
        " const scale = t.ownerSVGElement.getBoundingClientRect().width / 680;"
        " return parseFloat(getComputedStyle(t).fontSize) * scale; })"
    )
    assert min(heights) >= 9.5


@pytest.mark.parametrize("name", ["rehearsed", "extreme"])
@pytest.mark.parametrize("width", [360, 390, 1200])
def test_words_in_pictures_do_not_run_into_each_other_or_out_of_the_page(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 700})
    pictures = page.evaluate(
        "[...document.querySelectorAll('#certificates svg.picture, #rehearsal svg.picture')].map("
        " picture => [...picture.querySelectorAll('text')].map(t => {"
        " const box = t.getBoundingClientRect();"
        " return [t.textContent, box.left, box.right, box.top, box.bottom]; }))"
    )
    assert len(pictures) == 4
    for words in pictures:
        assert len(words) > 5
        for text, left, right, *_ in words:
            assert 0 <= left < right <= width, text
        for one, other in combinations(words, 2):
            apart = max(one[1], other[1]) >= min(one[2], other[2]) - 1
            # lines of text may touch: a box is higher than its letters
            above = max(one[3], other[3]) >= min(one[4], other[4]) - 0.3 * (one[4] - one[3])
            assert apart or above, (one, other)


def test_everything_is_there_without_javascript(visit):
    page = visit("grid", java_script_enabled=False)
    assert len(column(page, 1)) == 25
    assert page.locator(".filter").is_hidden()
    assert page.locator("#situations th button").count() == 0
    assert page.locator("#zeta-picture-title").count() == 1
    page.locator("#words summary").click()
    assert page.get_by_text("Seen more often than N∧.", exact=True).is_visible()


def test_it_prints_on_white_paper_without_controls(visit):
    page = visit("grid", color_scheme="dark", viewport={"width": 700, "height": 900})
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="print")
    assert relative_luminance(
        page.evaluate("getComputedStyle(document.body).backgroundColor")
    ) == pytest.approx(1)
    assert page.locator(".filter").is_hidden()
    assert page.locator("nav").is_hidden()
    assert page.evaluate("document.querySelector('main').getBoundingClientRect().right") <= 700


@pytest.mark.parametrize("paper", ["A4", "Letter"])
@pytest.mark.parametrize(
    "name", ["grid", "machine", "hundreds", "hostile", "rehearsed", "extreme", "alarming"]
)
def test_it_is_printed_on_four_pages_with_the_verdict_on_the_first(visit, name, paper):
    page = visit(name)
    pages = re.findall(rb"/Type\s*/Page\b(?!s)", page.pdf(format=paper))
    assert 1 <= len(pages) <= 4
    # as wide as the paper between its margins, of which the first page ends 240 mm further down
    width = round((182 if paper == "A4" else 188) / 25.4 * 96)
    page.set_viewport_size({"width": width, "height": 900})
    page.emulate_media(media="print")
    verdict = page.locator(".verdict").bounding_box()
    assert verdict["y"] + verdict["height"] <= 240 / 25.4 * 96


def test_rows_are_shown_in_steps_and_every_one_can_be_found(visit):
    page = visit("hundreds")
    status = page.get_by_role("status")
    assert len(column(page, 1)) == 100
    assert status.inner_text() == "100 of 577 rows shown"
    page.get_by_role("button", name="Show more rows").click()
    assert len(column(page, 1)) == 200
    page.get_by_label("Find a situation").fill("1153")
    assert column(page, 1) == ["1153".rjust(20, "x")]
    page.get_by_label("Find a situation").fill("")
    page.get_by_role("button", name="Show all").click()
    assert len(column(page, 1)) == 577
    assert page.get_by_role("button", name="Show all").is_hidden()


def test_sorting_shows_the_first_rows_of_all(visit):
    page = visit("hundreds")
    page.locator("#situations th", has_text="Seen in the log").get_by_role("button").click()
    shown = [int(text.replace(",", "")) for text in column(page, 7)]
    page.get_by_role("button", name="Show all").click()
    everyone = [int(text.replace(",", "")) for text in column(page, 7)]
    assert shown == sorted(everyone, reverse=True)[:100]


def test_what_is_folded_away_is_printed(visit):
    page = visit("grid")
    folded = page.locator("details:not([open])").count()
    assert folded > 3
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details:not([open])").count() == folded

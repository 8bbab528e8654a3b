"""The page of a run in a real browser: it renders, shows values where one points, asks nobody."""

import shutil

import pytest

from coverage_runs import run_with_certifiers
from made_runs import METHODS, made_run
from surestep.experiments import Selection, read_run
from surestep.pipeline.compare import Question, page_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        shutil.which("chromium") is None,
        reason="chromium is not installed (apt install chromium)",
    ),
]
HOSTILE = (("<img src=x onerror=alert(1)>" * 3, "", None), ("long " * 30, "k=1", None))


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    made = {
        "plain": made_run(folder / "plain", episodes=(1, 10, 100, 1000, 100000)),
        "hostile": made_run(folder / "hostile", [*HOSTILE, *METHODS]),
        "many": made_run(folder / "many", [("ramdp", f"kappa={i}", None) for i in range(20)]),
    }
    made["claims"] = run_with_certifiers(folder / "claims")
    for name, run in made.items():
        page = page_of(read_run(run), Question(Selection()))
        (folder / f"{name}.html").write_text(page, "utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


def test_values_are_shown_where_one_points_and_by_the_arrow_keys(visit):
    page = visit("plain")
    picture = page.locator("svg.picture").first
    values = page.locator("figure").first.locator(".values")
    assert values.is_hidden()
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    page.mouse.move(box["x"] + 0.99 * box["width"], box["y"] + box["height"] / 2)
    assert values.locator("p").inner_text() == "100,000 trajectories"
    rows = values.locator("li").all_inner_texts()
    assert len(rows) == 3
    last = page.locator("#curve-0-0-numbers tbody tr").last.locator("td").all_text_contents()
    assert sorted(row.split("\n")[-1] for row in rows) == sorted(last[1:])
    page.mouse.move(5, 5)
    assert values.is_hidden()
    picture.focus()
    assert values.locator("p").inner_text() == "1 trajectory"
    picture.press("ArrowRight")
    assert values.locator("p").inner_text() == "10 trajectories"
    picture.press("Escape")
    assert values.is_hidden()


@pytest.mark.parametrize("name", ["plain", "hostile", "many", "claims"])
@pytest.mark.parametrize("width", [360, 390, 800, 1400])
def test_no_page_is_wider_than_its_screen_and_values_stay_inside(visit, name, width):
    page = visit(name, viewport={"width": width, "height": 700})
    page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    picture = page.locator("svg.picture").first
    picture.scroll_into_view_if_needed()
    box = picture.bounding_box()
    for share in (0.15, 0.5, 0.98):
        page.mouse.move(box["x"] + share * box["width"], box["y"] + box["height"] / 2)
        shown = page.locator("figure").first.locator(".values").bounding_box()
        assert shown["x"] >= 0
        assert shown["x"] + shown["width"] <= width
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_renders_in_both_themes(visit, scheme):
    page = visit("plain", color_scheme=scheme)
    colour = page.evaluate("getComputedStyle(document.body).backgroundColor")
    parts = [int(part) for part in colour[4:-1].split(",")]
    assert (sum(parts) < 200) == (scheme == "dark")
    for picture in page.locator("svg[role=img]").all():
        assert picture.bounding_box()["width"] > 200


def test_methods_sort_and_everything_is_there_without_javascript(visit):
    page = visit("plain")
    page.locator("#methods th", has_text="Mean at").get_by_role("button").click()
    shown = page.locator("#methods tbody tr td:last-child").all_inner_texts()
    assert shown == sorted(shown, reverse=True)
    page = visit("plain", java_script_enabled=False)
    assert page.locator("circle title").count() == 3 * 3 * 5
    assert page.locator("#tables details").count() == 5

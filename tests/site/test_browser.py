"""The site in a real browser: it renders, searches, fits a phone, and asks nobody else."""

import re
import shutil
import subprocess
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHROMIUM = shutil.which("chromium")
FOLDER = "some/where"  # of a server, below which the site lies
LOADED = re.compile(r"""<(?:script|img|link|iframe)[^>]*(?:src|href)=["'](?:https?:)?//""")
KINDS = [
    "index",
    "guides",
    "start/log",
    "improving",
    "gallery/index",
    "theory/paper",
    "theory/proofs",
    "api/model",
    "commands",
]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed (apt install chromium)"),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of a server, with the site somewhere below it."""
    root = tmp_path_factory.mktemp("server")
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "-c", "tools/docsite", "docs"]
    subprocess.run([*command, root / FOLDER], cwd=ROOT, check=True)
    return root


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *words):
        """Says nothing: what is asked for is what the tests look at."""


@pytest.fixture(scope="module")
def addresses(site):
    """Where the site can be opened: as files, and from a folder of a server on this machine."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=site))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    host, port = server.server_address
    yield {"file": (site / FOLDER).as_uri(), "http": f"http://{host}:{port}/{FOLDER}"}
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture(params=["file", "http"])
def visit(browser, addresses, request):
    """Opens a page; afterwards, there may have been no complaint, and no request elsewhere."""
    address = addresses[request.param]
    contexts, complaints, requests = [], [], []

    def failed(asked):
        # Leaving a page breaks off what it still loads: that is no fault of the page.
        if asked.failure != "net::ERR_ABORTED":
            complaints.append(asked.url)

    def opened(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on(
            "console", lambda said: complaints.append(said.text) if said.type != "log" else None
        )
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("requestfailed", failed)
        page.on("request", lambda asked: requests.append(asked.url))
        page.goto(f"{address}/{name}")
        return page

    yield opened
    while_open = [*complaints]  # closing breaks off what is still being loaded
    for context in contexts:
        context.close()
    assert while_open == []
    assert [url for url in requests if not url.startswith((address, "data:"))] == []


def test_no_page_names_anything_to_load_from_elsewhere(site):
    pages = [page for page in site.rglob("*.html") if "_static" not in page.parts]
    sources = [*ROOT.glob("docs/**/*.md"), *ROOT.glob("docs/**/*.rst")]
    assert len(pages) == len(sources) + 3  # the indices of names and of modules, and the search
    for page in pages:
        assert not LOADED.search(page.read_text(encoding="utf-8")), page


@pytest.mark.parametrize("name", KINDS)
def test_it_renders(visit, name):
    page = visit(f"{name}.html")
    assert page.locator("h1").is_visible()
    assert page.locator("nav a", has_text="Guides").first.is_visible()
    broken = "image => !image.complete || image.naturalWidth === 0"
    assert page.evaluate(f"[...document.images].filter({broken}).map(image => image.src)") == []


@pytest.mark.parametrize(
    ("words", "place"),
    [
        ("stitched", "certificates.html"),
        ("evaluate_with_bound", "api/planning.html"),
        ("hidden confounders", "checks.html"),
        ("off-policy evaluation", "api/offpolicy.html"),
        ("counterfactual", "own_policy.html"),
    ],
)
def test_it_searches_without_a_server(visit, words, place):
    page = visit("index.html")
    page.keyboard.press("Control+k")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    found = page.locator(f"#search-results li a[href*='{place}']")  # results come one by one
    found.first.wait_for()
    page.wait_for_load_state("networkidle")
    found.first.click()
    page.locator("article h1").wait_for()


def test_dark_is_dark_formulas_and_all(visit):
    page = visit("theory/paper.html", color_scheme="dark")
    brightness = """(element, property) => getComputedStyle(element)[property]
        .match(/[\\d.]+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3"""
    assert page.locator("body").evaluate(brightness, "backgroundColor") < 60
    assert page.locator(".formula path").first.evaluate(brightness, "fill") > 150


@pytest.mark.parametrize("name", [*KINDS, "coverage", "changelog", "api/experiments", "genindex"])
def test_a_phone_needs_no_scrolling_sideways(visit, name):
    page = visit(f"{name}.html", viewport={"width": 390, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    text = "[...document.querySelectorAll('article :is(h1, h2, h3, p, dt)')]"
    inside = "element => element.scrollWidth <= element.clientWidth + 1"
    outside = f"{text}.filter(e => e.clientWidth && !({inside})(e)).map(e => e.textContent)"
    assert page.evaluate(outside) == []


def test_a_type_of_an_argument_leads_to_its_entry(visit):
    page = visit("api/planning.html")
    entry = page.locator("dl:has(> dt[id='surestep.planning.performance'])")
    entry.locator("dl.field-list dt a", has_text="FiniteMDP").first.click()
    page.locator("dt[id='surestep.model.FiniteMDP']").wait_for()
    assert page.url.endswith("api/model.html#surestep.model.FiniteMDP")


def test_a_card_leads_to_its_page(visit):
    page = visit("guides.html")
    page.locator("ul.cards li", has_text="Recompute a result").click(position={"x": 5, "y": 5})
    page.wait_for_url("**/verifying.html")


@pytest.mark.parametrize("name", ["pumps", "loans"])
def test_a_page_of_the_gallery_can_be_downloaded_as_a_notebook(visit, name):
    page = visit(f"gallery/{name}.html")
    link = page.locator("a[download]", has_text="Download this page as a notebook")
    if page.url.startswith(
        "file:"
    ):  # a browser shows files of this machine in place of saving them
        link.click()
        page.wait_for_url(f"**/{name}.ipynb")
        return
    with page.expect_download() as waiting:
        link.click()
    assert waiting.value.suggested_filename == f"{name}.ipynb"


@pytest.mark.parametrize("width", [960, 1300, 1600, 1920])
def test_the_head_is_one_line(visit, width):
    page = visit("api/model.html", viewport={"width": width, "height": 900})
    tops = "[...document.querySelectorAll('.bd-header .navbar-nav > li')].map(e => e.offsetTop)"
    assert len(set(page.evaluate(tops))) == 1
    assert page.locator(".bd-header").bounding_box()["height"] <= 80


def test_code_of_88_columns_fits_beside_the_contents(visit):
    page = visit("logs.html", viewport={"width": 1300, "height": 900})
    block = page.locator("article pre").first
    block.evaluate("pre => { pre.textContent = 'x'.repeat(88) }")
    assert block.evaluate("pre => pre.scrollWidth <= pre.clientWidth")


def test_a_button_copies_what_one_types(visit):
    page = visit("logs.html", permissions=["clipboard-read", "clipboard-write"])
    copy = "block => block.querySelector('button.copy').click()"
    blocks = page.locator("div.highlight")
    blocks.filter(has_text=">>> import surestep").first.evaluate(copy)
    page.locator("button.copy", has_text="Copied").wait_for(state="attached")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied.startswith("import surestep\nsource = surestep.read_log(")
    assert ">>>" not in copied
    assert "(70631, 15, 4)" not in copied


def test_the_first_page_shows_a_report(visit):
    page = visit("index.html", viewport={"width": 1300, "height": 900})
    picture = page.locator("article img[src$='report.png']").bounding_box()
    assert picture["x"] > 650
    assert picture["y"] + picture["height"] < 900
    assert picture["width"] < 400

"""The real browser that pages are opened in."""

import shutil

import pytest


@pytest.fixture(scope="module")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        started = driver.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox"]
        )
        yield started
        started.close()


@pytest.fixture
def visit(browser, pages):
    """Opens one of `pages`; afterwards, nothing was complained of, or asked for but the file."""
    contexts, complaints, requests = [], [], []

    def opened(name, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: complaints.append(message.text))
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("dialog", lambda dialog: complaints.append(dialog.message))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(pages[name])
        return page

    yield opened
    for context in contexts:
        context.close()
    assert complaints == []
    assert set(requests) <= set(pages.values())

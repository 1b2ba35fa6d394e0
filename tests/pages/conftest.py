"""A real Chromium for the tests of the built site."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from tests.pages.site import DESKTOP, SITE, Visit

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
REQUIRED = "BUG_ZOO_REQUIRE_CHROMIUM"  # set where the tests must not be skipped


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        missing = "needs Chromium: apt-get install chromium"
        pytest.fail(missing) if os.environ.get(REQUIRED) == "1" else pytest.skip(missing)
    if not (SITE / "index.html").is_file():
        pytest.fail(f"needs the built site: nox -s book, which makes {SITE}")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def shared_visit(browser: Browser) -> Iterator[Visit]:
    context = browser.new_context(viewport=DESKTOP, permissions=["clipboard-read", "clipboard-write"])
    yield Visit(context)
    context.close()


@pytest.fixture
def same_visit(shared_visit: Visit) -> Visit:
    """Return the one visit of the tests that only open pages: a tab of its own takes as long as most pages."""
    shared_visit.wrong.clear()
    shared_visit.page.set_viewport_size(DESKTOP)
    return shared_visit


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Visit]]:
    """Return a function that makes a visit to the site; its arguments are those of a browser's context."""
    contexts: list[BrowserContext] = []

    def begin(**settings: object) -> Visit:
        contexts.append(browser.new_context(**{"viewport": DESKTOP} | settings))
        return Visit(contexts[-1])

    yield begin
    for context in contexts:
        context.close()

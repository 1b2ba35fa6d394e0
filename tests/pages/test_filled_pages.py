"""What the pages show of what a reader brings, and a report as a file, can be read by everybody in both themes."""

from __future__ import annotations

from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.pages.site import AT_ONCE, PHONE, in_the_zoo

TRACEBACK = """\
Traceback (most recent call last):
  File "train.py", line 16, in <module>
    loss = nn.functional.cross_entropy(model(inputs), labels)
IndexError: Target 2 is out of bounds.
"""
each_theme = pytest.mark.parametrize("theme", ["light", "dark"])


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a report of each kind: as a page, and as JSON."""
    folder = tmp_path_factory.mktemp("explained")
    (folder / "traceback.txt").write_text(TRACEBACK)
    for kind in ("html", "json"):
        said = in_the_zoo("-m", "diagnostics", "explain", "--format", kind, "traceback.txt", folder=folder)
        (folder / f"report.{kind}").write_text(said)
    return folder


def serious_faults(page: Page, theme: str) -> list[str]:
    page.add_style_tag(content=AT_ONCE)
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    found = Axe().run(page, options={"iframes": False}).response["violations"]
    return [
        f"{violation['id']}: {node['html'][:200]} {node['failureSummary']}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]


@each_theme
def test_an_explained_traceback(visit, theme):
    opened = visit(color_scheme=theme, viewport=PHONE)
    page = opened.open("paste")
    page.fill("#pasted", TRACEBACK)
    page.locator("#explained p.rule a").wait_for()
    assert serious_faults(page, theme) == []


@each_theme
def test_an_opened_report(visit, folder, theme):
    opened = visit(color_scheme=theme, viewport=PHONE)
    page = opened.open("report")
    page.set_input_files("#report-file", folder / "report.json")
    page.locator("#opened-report article.finding").wait_for()
    assert serious_faults(page, theme) == []


@each_theme
def test_a_report_as_a_file(visit, folder, theme):
    page = visit(color_scheme=theme).page
    page.goto((folder / "report.html").as_uri())
    assert page.get_by_text("labels-out-of-range").first.is_visible()
    assert serious_faults(page, theme) == []

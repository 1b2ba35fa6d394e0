"""Every page loads, fetches nothing from elsewhere, fits a phone, and can be read by everybody."""

from __future__ import annotations

import itertools
import re

import pytest
from axe_playwright_python.sync_playwright import Axe

from tests.pages.site import AT_ONCE, DESKTOP, PHONE, SITE

NAMES = sorted(page.relative_to(SITE).with_suffix("").as_posix() for page in SITE.rglob("*.html"))
PAGES = [name for name in NAMES if not name.startswith("_static/")]  # where the theme keeps templates
GENERATED = {"genindex", "search"}  # by Sphinx, for its own purposes
# The pages of a folder are of one make: where a look takes seconds, the first stands for them unless all are asked
# for, and of the rules' pages a few.
FIRST = {page for page in PAGES if "/" not in page}
FIRST |= {min(pages) for _, pages in itertools.groupby(PAGES, lambda page: page.rpartition("/")[0])}
OTHERS = [page for page in PAGES if not page.startswith("rules/")]
LOOKED_AT = [
    pytest.param(page, marks=[] if page in FIRST else [pytest.mark.exhaustive])
    for page in [*OTHERS, *[page for page in PAGES if page.startswith("rules/")][::20]]
]
# Figures that say nothing to those who do not see them. Where there are no words, Sphinx puts the file's name.
WITHOUT_WORDS = """() => [
    ...[...document.images].filter(one => !one.alt.trim() || /\\.(png|svg|jpe?g|gif|webp)$/i.test(one.alt)),
    ...[...document.querySelectorAll("svg:not(button svg, [aria-hidden=true])")].filter(one => !one.ariaLabel),
].map(one => one.outerHTML.slice(0, 200))"""


@pytest.mark.parametrize("name", PAGES)
def test_loads_without_errors_or_requests_and_fits_a_phone(same_visit, name):
    opened = same_visit
    page = opened.open(name)
    assert opened.wrong == []
    if name not in GENERATED:
        assert page.locator("h1:visible").count() == 1  # another one is for the printer
    levels = [int(level) for level in page.locator("article h1, article h2, article h3, article h4").evaluate_all(
        "found => found.map(heading => heading.tagName[1])"
    )]  # fmt: skip
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    assert not opened.scrolls_sideways
    page.set_viewport_size(PHONE)
    assert not opened.scrolls_sideways
    assert opened.scrolling_blocks == []
    assert page.evaluate(WITHOUT_WORDS) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", LOOKED_AT)
def test_has_no_serious_fault_of_accessibility(visit, name, theme):
    page = visit(color_scheme=theme).open(name)
    page.add_style_tag(content=AT_ONCE)
    page.evaluate("theme => { document.documentElement.dataset.theme = theme; }", theme)
    more = {"label-content-name-mismatch": {"enabled": True}}  # left out by default in older versions
    found = Axe().run(page, options={"iframes": False, "rules": more}).response["violations"]
    serious = [
        f"{violation['id']}: {node['target']} {node['html'][:200]} {node['failureSummary']}"
        for violation in found
        if violation["impact"] in ("serious", "critical")
        for node in violation["nodes"]
    ]
    assert not serious, "\n".join(serious[:8])


def test_the_search_finds_a_rule_without_a_server(visit):
    opened = visit()
    page = opened.open("search")
    page.goto(f"{page.url}?q=ragged")
    page.wait_for_selector("#search-results li a")
    links = page.locator("#search-results li a").evaluate_all("found => found.map(link => link.href)")
    assert any("rules/ragged-batch.html" in link for link in links)
    # Sphinx fetches each page for an excerpt. A browser refuses that to a file, and the results stand without.
    assert not [wrong for wrong in opened.wrong if wrong.startswith("outside:")]


def test_dark_mode_is_one_click_and_stays(visit):
    opened = visit(color_scheme="light")
    page = opened.open("paste")
    ground = "() => getComputedStyle(document.body).backgroundColor"
    seen = {page.evaluate(ground)}
    for _ in range(3):  # light, dark, as the system has it
        if page.evaluate("() => document.documentElement.dataset.theme") == "dark":
            break
        page.locator("button.theme-switch-button:visible").first.click()
    seen.add(page.evaluate(ground))
    assert len(seen) == 2
    opened.open("report")
    assert page.evaluate("() => document.documentElement.dataset.theme") == "dark"
    assert page.evaluate(ground) in seen


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
def test_a_reader_without_javascript_gets_the_text_and_a_way_on(visit, size):
    opened = visit(java_script_enabled=False, viewport=size)
    page = opened.open("exhibits/04_wrong_label_count")
    assert page.get_by_role("heading", name="The cause").is_visible()
    wrong = page.locator("details.guess.wrong").first
    assert not wrong.locator("p").is_visible()
    wrong.locator("summary").click()
    assert wrong.locator("p").is_visible()
    assert "in a terminal" in opened.open("paste").locator("article noscript").inner_text().lower()
    assert re.search("report.html", opened.open("report").locator("article noscript").inner_text())

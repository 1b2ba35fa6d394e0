"""What a notebook shows for a report: the same as the page, and nothing that touches the rest of the notebook."""

import dataclasses
import re

import pytest

from diagnostics.report.html.page import embedded, page
from diagnostics.report.report import Report
from tests.unit.report.html.test_page import PAGES, WATCHED, Page

RULE = re.compile(r"([^{}]+)\{([^{}]*)\}")
WITHIN = ".diagnostics-report.diagnostics-report"


def style_of(text):
    return re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]


@pytest.mark.parametrize("report", PAGES.values(), ids=PAGES)
class TestEveryReport:
    def test_is_one_well_formed_box(self, report):
        tags = Page(embedded(report)).tags
        assert tags[0] == ("div", {"class": "diagnostics-report"})
        assert [tag for tag, _ in tags].count("style") == 1

    def test_says_what_the_page_says(self, report):
        said, whole = Page(embedded(report)).words.strip(), Page(page(report)).words
        assert report.title[1:] in said
        assert whole.partition(f"{said} ")[2].startswith("Made by diagnostics.")

    def test_runs_and_fetches_nothing_and_is_no_part_of_the_contents(self, report):
        text = embedded(report)
        for tag, attributes in Page(text).tags:
            assert tag not in ("script", "link", "iframe", "img", "h1", "h2", "h3", "html", "body", "main", "meta")
            assert "id" not in attributes
            assert not [name for name in attributes if name.startswith("on")]
        assert not re.search(r"url\(|@import|https?:|//[a-z]", text)

    def test_is_what_a_notebook_asks_for(self, report):
        assert report._repr_html_() == embedded(report)


def test_every_style_applies_to_the_report_alone():
    style = style_of(embedded(WATCHED))
    assert style.count("{") == style.count("}")
    flat = re.sub(r"@media[^{]*\{((?:[^{}]|\{[^{}]*\})*)\}", r"\1", style)
    rules = RULE.findall(flat)
    assert len(rules) > 80
    for selectors, _ in rules:
        for selector in selectors.split(","):
            assert WITHIN in selector, selector
    assert not re.search(r"(^|[\s,}])(:root|body|main|html|h[123])\s*[{,]", style)
    assert "@media (prefers-color-scheme: dark)" in style


def test_every_style_of_the_page_is_there():
    style = style_of(embedded(WATCHED))
    wanted = re.findall(r"\n\.([a-z]+)[ .:,>{]", style_of(page(WATCHED)))
    assert {name for name in wanted if f"{WITHIN} .{name}" not in style} == set()
    for level in "123":
        assert f"{WITHIN} .h{level} {{" in style


@pytest.mark.parametrize(
    ("theme", "colour"),
    [
        ('[data-jp-theme-light="true"]', "--page: #fbfbfa"),
        ('[data-theme="light"]', "--page: #fbfbfa"),
        ('[data-jp-theme-light="false"]', "--page: #14171b"),
        (".vscode-dark", "--page: #14171b"),
        ('html[theme="dark"]', "--page: #14171b"),
    ],
)
def test_a_notebook_that_tells_its_theme_gets_its_colours(theme, colour):
    (body,) = [
        declared
        for selectors, declared in RULE.findall(style_of(embedded(WATCHED)))
        if f"{theme} {WITHIN}" in selectors
    ]
    assert colour in body


def test_headings_are_told_to_screen_readers():
    text = embedded(WATCHED)
    assert '<p class="h1" role="heading" aria-level="3">Watched 6 steps of Net&lt;T&gt;</p>' in text
    assert text.count('role="heading"') == text.count('class="h1"') + text.count('class="h2"') + text.count(
        'class="h3"'
    )


def test_escapes_what_comes_from_the_user():
    hostile = Report("</div><script>alert(1)</script><h2>x</h2>", (dataclasses.replace(WATCHED.findings[0]),))
    text = embedded(hostile)
    assert "<script" not in text
    assert "&lt;h2&gt;" in text


def test_stays_small():
    assert len(embedded(Report("examined"))) < 20_000

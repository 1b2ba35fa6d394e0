"""Every exhibit's page: guesses before the cause, folds, the fix as a difference, and the ways on from it."""

from __future__ import annotations

import json

import pytest

from book.builder.outline import homes, load
from bugs.zoo.keeper.catalogue import load_catalogue
from tests.pages.site import PHONE, ROOT, SITE

EXHIBITS = list(load_catalogue(ROOT).values())
CHAPTERS = homes(load(ROOT / "book" / "chapters"), EXHIBITS)
each_exhibit = pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.id)


@each_exhibit
def test_one_guess_is_open_at_a_time_and_each_is_answered(visit, exhibit):
    opened = visit(viewport=PHONE)
    page = opened.open(exhibit.page)
    guesses = page.locator("details.guess")
    assert guesses.count() == len(exhibit.guesses)
    for number, one in enumerate(exhibit.guesses):
        guess = guesses.nth(number)
        guess.locator("summary").focus()
        page.keyboard.press("Enter")
        assert guess.locator("p").is_visible()
        assert guess.inner_text().split("\n") == [one.guess, "", f"{'Yes' if one.right else 'No'}. {one.answer}"]
        assert page.locator("details.guess[open]").count() == 1
    cause = page.get_by_role("heading", name="The cause")
    assert guesses.last.bounding_box()["y"] < cause.bounding_box()["y"]
    assert not opened.scrolls_sideways
    assert opened.wrong == []


@each_exhibit
def test_folds_unfold_and_show_what_they_hold(same_visit, exhibit):
    opened = same_visit
    page = opened.open(exhibit.page)
    folds = page.locator("article details:not(.guess)")
    assert folds.count() >= 4  # the first cell, and the hints
    for fold in folds.all():
        summary = fold.locator("summary").first
        hidden = fold.evaluate("fold => fold.scrollHeight")
        summary.click()
        assert fold.evaluate("fold => fold.open")
        assert fold.evaluate("fold => fold.scrollHeight") > hidden
    for answer in page.locator("article .admonition.dropdown").all():
        answer.locator(".admonition-title").click()
        assert answer.locator("p").last.is_visible()
    assert opened.wrong == []


@each_exhibit
def test_the_fix_is_a_coloured_difference_and_code_can_be_copied(same_visit, exhibit):
    opened = same_visit
    page = opened.open(exhibit.page)
    removed, added = (page.locator(f"div.highlight-diff {kind}").first for kind in (".gd", ".gi"))
    colours = [part.evaluate("part => getComputedStyle(part).backgroundColor") for part in (removed, added)]
    assert len(set(colours)) == 2
    assert "rgba(0, 0, 0, 0)" not in colours
    cell = page.locator("div.highlight-diff").first
    cell.hover()
    cell.locator("button.copybtn").click()
    copied = page.evaluate("() => navigator.clipboard.readText()")
    assert f"bugs/{exhibit.folder}/train.py" in copied
    assert opened.wrong == []


@each_exhibit
def test_leads_to_its_notebook_its_chapter_its_rules_and_back(same_visit, exhibit):
    opened = same_visit
    page = opened.open(exhibit.page)
    links = {link.get_attribute("href"): link for link in page.locator("article a[href]").all()}
    assert f"../chapters/{CHAPTERS[exhibit.id].name}.html" in links
    for rule in exhibit.rules:
        assert f"../rules/{rule}.html" in links
    # Chromium reports no download of a page that is opened from its file: read what the link names.
    download = page.get_by_role("link", name="Download the notebook")
    assert download.get_attribute("download") is not None
    file = (SITE / exhibit.page).parent / download.get_attribute("href")
    notebook = json.loads(file.read_text("utf-8"))
    assert any("load_catalogue" in "".join(cell["source"]) for cell in notebook["cells"])
    for name in exhibit.rules:
        rule = opened.open(f"rules/{name}")
        assert rule.locator(f"article a[href='../{exhibit.page}.html']").count() >= 1
    assert opened.wrong == []

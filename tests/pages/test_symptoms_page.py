"""The symptoms page leads from a curve to its candidates, with and without JavaScript."""

from __future__ import annotations

import pytest

from tests.pages.site import DESKTOP, PHONE


@pytest.mark.parametrize("size", [DESKTOP, PHONE], ids=["desktop", "phone"])
@pytest.mark.parametrize("script", [True, False], ids=["with JavaScript", "without"])
def test_a_click_on_a_curve_shows_its_candidates(visit, size, script):
    opened = visit(viewport=size, java_script_enabled=script)
    page = opened.open("symptoms")
    curves = page.locator("a.shape")
    assert curves.count() == 9
    for number in range(9):
        curve = curves.nth(number)
        title = curve.locator("span").inner_text()
        assert len(curve.locator("svg").get_attribute("aria-label")) > 30
        curve.click()
        heading = page.locator("article h3", has_text=title)
        assert 0 <= heading.bounding_box()["y"] < size["height"]
        section = page.locator("article section", has=page.locator("h3", has_text=title))
        candidates = section.last.locator("ol > li")
        assert 3 <= candidates.count() <= 5
        assert candidates.first.locator("pre").is_visible()
    if script:  # without, the browser reports each script that it does not run
        assert opened.wrong == []


def test_the_long_lists_are_folded(visit):
    page = visit().open("symptoms")
    folds = page.locator("article details")
    assert folds.count() > 9
    assert page.locator("article details[open]").count() == 0
    folds.last.locator("summary").click()
    assert folds.last.locator("li").first.is_visible()

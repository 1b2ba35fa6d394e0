"""The list of rules is folded by stage, and is filtered by what a reader types."""

from __future__ import annotations

from tests.pages.site import PHONE


def test_words_leave_the_rules_that_hold_them_all(visit):
    opened = visit(viewport=PHONE)
    page = opened.open("rules/index")
    rules = page.locator("article details li:visible")
    assert rules.count() == 0
    page.fill("#find-rule input", "Batch norm")
    shown = rules.all_inner_texts()
    assert 2 <= len(shown) <= 10
    assert all("batch" in rule.lower() and "norm" in rule.lower() for rule in shown)
    assert page.locator("#find-rule output").inner_text() == f"{len(shown)} rules"
    assert page.locator("article h2:visible").count() < 5
    page.fill("#find-rule input", "no such rule")
    assert page.locator("#find-rule output").inner_text() == "0 rules"
    page.fill("#find-rule input", "")
    assert rules.count() == 0
    assert page.locator("article h2:visible").count() > 8
    assert not opened.scrolls_sideways
    assert opened.wrong == []


def test_without_javascript_every_rule_can_be_unfolded(visit):
    page = visit(java_script_enabled=False).open("rules/index")
    assert not page.locator("#find-rule").is_visible()
    for fold in page.locator("article details").all():
        fold.locator("summary").click()
    assert page.locator("article details li:visible").count() > 100


def test_the_sidebar_does_not_list_the_rules(visit):
    page = visit().open("rules/ragged-batch")
    assert page.locator(".bd-sidebar-primary a[href*='rules/']").count() <= 1
    assert page.locator("article a[href='index.html']").count() == 1

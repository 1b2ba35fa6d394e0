"""Every rule and every cage has its place in the generated pages."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from book.builder.chapter_pages import exhibits_index
from book.builder.outline import shown
from book.generated import pages
from bugs.zoo.keeper.catalogue import Exhibit, load_catalogue, reasons_without_exhibit
from bugs.zoo.keeper.manifest import readable
from diagnostics.engine.finding import STAGES
from diagnostics.engine.rule import SECTIONS, Rule
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).parents[4]
EXHIBITS = list(load_catalogue(ROOT).values())


class TestRulePage:
    @pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.name)
    def test_has_all_sections_in_order_and_says_what_it_is(self, rule: Rule) -> None:
        page = pages.rule_page(rule, EXHIBITS)
        lines = page.splitlines()
        assert [line.removeprefix("## ") for line in lines if line.startswith("## ")] == list(SECTIONS)
        assert lines[:5] == ["---", "orphan: true", "---", "", f"# {rule.name}"]
        assert rule.summary() in page.replace("\n", " ")
        assert f"- **Stage** [{rule.stage}](#stage-{rule.stage}), one of [all rules](index.md)" in lines
        (cage,) = (line for line in lines if line.startswith("- **Exhibit** "))
        named = [exhibit for exhibit in EXHIBITS if rule.name in exhibit.rules]
        if named:
            assert all(f"[{shown(exhibit)}](../{exhibit.page}.ipynb)" in cage for exhibit in named)
        else:
            assert cage == f"- **Exhibit** none: {reasons_without_exhibit(ROOT)[rule.name]}"

    def test_says_which_ways_in_find_it(self) -> None:
        ways = {rule.name: pages.ways_in(rule) for rule in all_rules()}
        assert ways["labels-out-of-range"] == ["examine", "explain"]
        assert ways["device-mismatch"] == ["explain"]
        assert ways["class-imbalance"] == ["examine"]
        assert ways["crowded-gpu"] == ["explain", "gpu"]
        assert ways["gradients-not-zeroed"] == ["watch"]
        assert ways["non-finite-loss"] == ["examine", "watch", "explain"]
        assert all(ways.values())


class TestRulesIndex:
    def test_lists_every_rule_under_its_stage(self) -> None:
        place, stages = {}, []
        for line in pages.rules_index(all_rules()).splitlines():
            if line.startswith("## "):
                stages.append(line[3:].lower())
            elif line.startswith("- ["):
                place[line[3 : line.index("]")]] = stages[-1]
        assert place == {rule.name: rule.stage for rule in all_rules()}
        assert stages == [stage for stage in STAGES if stage in place.values()]

    def test_folds_the_rules_of_a_stage(self) -> None:
        stages = pages.rules_index(all_rules()).split("\n## ")[1:]
        for stage in stages:
            before, fold, rules = stage.partition(":::{dropdown} ")
            assert fold
            assert "- [" not in before
            assert int(rules.split()[0]) == rules.partition("\n:::\n")[0].count("\n- [")


class TestReadable:
    @pytest.mark.parametrize(
        ("pattern", "words"),
        [
            (
                r"expected sequence of length \d+ at dim 1 \(got \d+\)",
                "expected sequence of length N at dim 1 (got N)",
            ),
            (r"^Target \d is out of bounds\.$", "Target N is out of bounds."),
            (r"can't allocate .* bytes", "can't allocate … bytes"),
            (r"Target 2 is out of bounds", "Target 2 is out of bounds"),
        ],
    )
    def test_a_pattern_is_shown_as_the_words_it_stands_for(self, pattern: str, words: str) -> None:
        assert readable(pattern) == words


class TestSeen:
    def test_alternatives_of_a_message_are_separate_words(self) -> None:
        (exhibit,) = (exhibit for exhibit in EXHIBITS if exhibit.id == "07")
        assert pages.seen(exhibit) == (
            "`RuntimeError: DefaultCPUAllocator: can't allocate memory` or `CUDA out of memory`"
        )

    def test_prose_is_not_shown_as_code(self) -> None:
        (exhibit,) = (exhibit for exhibit in EXHIBITS if exhibit.id == "15")
        assert pages.seen(exhibit) == "The loss stays at ln 4 = 1.386, and the accuracy at one in four"

    @pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.id)
    def test_no_pattern_is_left_in_what_is_seen(self, exhibit: Exhibit) -> None:
        assert not re.search(r"[|\\]", pages.seen(exhibit))


class TestIndex:
    def test_every_cage_is_on_it(self) -> None:
        index = exhibits_index(EXHIBITS)
        for exhibit in EXHIBITS:
            assert f"grid-item-card}} {shown(exhibit)}\n:link: {exhibit.folder}\n" in index
            assert f"`nox -s bug-{exhibit.id}`" in index

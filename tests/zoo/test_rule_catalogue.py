"""Every rule has its page, its exhibit or a reason for having none, and a test that makes it fire."""

import inspect
import re
from pathlib import Path

import pytest

from bugs.zoo.keeper.catalogue import load_catalogue, reasons_without_exhibit
from diagnostics.collectors.crash.messages.table import all_messages
from diagnostics.engine.finding import SEVERITIES, STAGES
from diagnostics.engine.rule import SECTIONS, Rule
from diagnostics.rules.registry import all_rules

ROOT = Path(__file__).parents[2]
RULES = {rule.name: rule for rule in all_rules()}
SAID = "\n".join(file.read_text() for file in (ROOT / "tests/unit/rules/messages").glob("*.txt"))


def every_rule(test):
    return pytest.mark.parametrize("rule", RULES.values(), ids=RULES.keys())(test)


def sections_of(page: str) -> dict[str, str]:
    title, *parts = re.split(r"^## ", page, flags=re.MULTILINE)
    return {"": title} | {part.partition("\n")[0]: part.partition("\n")[2].strip() for part in parts}


def test_every_rule_the_first_three_exhibits_need_is_there():
    # The names are a contract: reports, ignores and other people's tests use them.
    assert set(RULES) >= {
        "attention-mask-missing",
        "cannot-overfit-one-batch",
        "class-imbalance",
        "device-mismatch",
        "eval-mode-training",
        "ignores-input",
        "initial-loss-off",
        "labels-missing",
        "labels-out-of-range",
        "metric-on-logits",
        "mostly-padding",
        "no-gradient",
        "non-finite-inputs",
        "non-finite-loss",
        "optimizer-misses-parameters",
        "ragged-batch",
        "single-class-labels",
        "token-ids-out-of-range",
        "truncated-inputs",
        "unreached-parameters",
        "untokenized-dataset",
        "unused-classes",
    }


def test_one_file_holds_one_rule():
    folders = [ROOT / "diagnostics" / "rules" / stage for stage in STAGES]
    files = [f for folder in folders for f in folder.rglob("*.py") if f.name != "__init__.py"]
    assert sorted(f.stem.replace("_", "-") for f in files) == sorted(RULES)
    for file in files:
        stage = RULES[file.stem.replace("_", "-")].stage
        assert file.relative_to(ROOT / "diagnostics" / "rules").parts[0] == stage


@every_rule
def test_its_page_has_every_section_in_order(rule: Rule):
    sections = sections_of(inspect.getdoc(rule) or "")
    assert tuple(sections) == ("", *SECTIONS)
    assert all(sections.values()), [name for name, text in sections.items() if not text]
    assert "```python" in sections["Example"]
    assert "```python" in sections["Instead"]


@every_rule
def test_its_stage_and_severity_are_of_the_catalogue(rule: Rule):
    assert rule.stage in STAGES
    assert rule.severity in SEVERITIES


@every_rule
def test_an_exhibit_shows_it_or_it_says_why_none_does(rule: Rule):
    shown_in = [exhibit.id for exhibit in load_catalogue(ROOT).values() if rule.name in exhibit.rules]
    reason = reasons_without_exhibit(ROOT).get(rule.name, "")
    assert bool(shown_in) != bool(reason), (
        f"shown in {shown_in}, and bugs/rules_without_exhibit.toml says {reason!r}: one of the two must be there"
    )


def test_reasons_are_given_for_rules_alone():
    assert set(reasons_without_exhibit(ROOT)) <= set(RULES)


@every_rule
def test_a_test_makes_it_fire(rule: Rule):
    examples = [
        row.examples for row in all_messages() if row.rule == rule.name
    ]  # of tests/unit/crash/test_messages
    assert any(examples) or re.search(f"^{rule.name}, (error|warning|note): ", SAID, re.M)


@every_rule
def test_what_it_needs_is_said_by_annotations(rule: Rule):
    checks = [method for name, method in inspect.getmembers(rule, inspect.ismethod) if name.startswith("from_")]
    assert checks
    for check in checks:
        assert check.__doc__
        for parameter in inspect.signature(check).parameters.values():
            assert parameter.annotation is not parameter.empty


def test_rules_and_facts_import_no_framework():
    library = ROOT / "diagnostics"
    for file in [
        *(library / "rules").rglob("*.py"),
        *(library / "facts").rglob("*.py"),
        *(library / "engine").rglob("*.py"),
    ]:
        found = re.search(
            r"^\s*(?:import|from) (torch|tensorflow|keras|transformers|datasets)\b", file.read_text(), re.M
        )
        assert found is None, f"{file.relative_to(ROOT)} imports {found[1]}"

"""Limits on what makes a detection hard to follow. They may fall, and are not to be raised."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

from diagnostics.rules.registry import all_rules

LIBRARY = Path(__file__).resolve().parents[2] / "diagnostics"
FACTS_OF_ONE_RULE = 79  # kinds of facts


def test_nothing_outside_the_rules_imports_a_rule() -> None:
    pattern = re.compile(r"diagnostics\.rules\.(?!registry\b|shared\b)\w+")
    found = {
        f"{file.relative_to(LIBRARY)}: {imported}"
        for file in LIBRARY.rglob("*.py")
        if file.relative_to(LIBRARY).parts[0] != "rules"
        for node in ast.walk(ast.parse(file.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        for imported in pattern.findall(node.module or "")
    }
    assert found == set()


def test_facts_are_rarely_made_for_one_rule_alone() -> None:
    rules = defaultdict(set)
    for rule in all_rules():
        for needs in rule.checks().values():
            for need in needs.values():
                rules[need.kind].add(rule.name)
    assert sum(len(takers) == 1 for takers in rules.values()) <= FACTS_OF_ONE_RULE

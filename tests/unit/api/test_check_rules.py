"""The rules that checks of tests name are there to be read."""

import re
from pathlib import Path

import diagnostics
from diagnostics.rules.registry import all_rules

CHECKS = Path(diagnostics.__file__).parent / "api" / "checks"


def test_every_rule_that_a_check_names_exists():
    known = {rule.name for rule in all_rules()}
    text = "\n".join(file.read_text() for file in CHECKS.glob("*.py"))
    named = set(re.findall(r"diagnose rules ([a-z-]+)", text))
    named |= set(re.findall(r'"([a-z]+(?:-[a-z]+)+)"', text))  # nothing else there is written like this
    assert len(named) >= 10
    assert named - known == set()

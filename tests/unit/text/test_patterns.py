"""The time of every regular expression grows with the length of the text, and no faster."""

import re
from pathlib import Path

import pytest

import diagnostics
from diagnostics.collectors.crash.messages.table import all_messages
from diagnostics.report.redaction import _secrets
from tests.support.patterns import Sources, Written, growth

WRITTEN = Sources(Path(diagnostics.__file__).parent).patterns()


def of_the_table():
    """Return the patterns of the table of messages, each once; the page for pasted errors has them, too."""
    found = {}
    for row in all_messages():
        for pattern in (row.compiled, *(re.compile(part) for part in (row.within, row.at) if part)):
            found.setdefault(pattern, Written(f"table:{row.family}", pattern, False))
    return list(found.values())


def slow(patterns):
    found = ((one, growth(one.pattern, at_start=one.at_start)) for one in patterns)
    return [f"{one.place} {one.pattern.pattern[:80]}: {text}" for one, text in found if text is not None]


def test_patterns_of_the_library_are_collected():
    places = {one.place.partition(":")[0] for one in WRITTEN}
    assert len(WRITTEN) > 400
    assert {
        "diagnostics/collectors/tracebacks/nature.py", "diagnostics/collectors/tracebacks/own/conditions.py",
        "diagnostics/report/redaction.py", "diagnostics/collectors/crash/keras.py",
    } <= places  # fmt: skip


@pytest.mark.parametrize(
    "pattern", [r"\w*x", r"(?:a|b)*c\w+d", r"foo.*bar", r"(\w+\s?)+:", r"^(?:list )?\w* out|\w+\(\) arg", r" +$"]
)
def test_slow_pattern_is_noticed(pattern):
    assert growth(re.compile(pattern)) is not None


@pytest.mark.parametrize("pattern", [r"\bfoo\w{0,40}bar", r"^\w*x", r"(?<!\w)\w+ out", r"[^\n]{1,300}x"])
def test_quick_pattern_is_not_taken_for_slow(pattern):
    assert growth(re.compile(pattern)) is None


@pytest.mark.parametrize("part", range(8))
def test_patterns_of_the_library_take_linear_time(part):
    assert slow(WRITTEN[part::8]) == []


def test_patterns_of_secrets_take_linear_time():
    assert slow([Written("secrets.toml", pattern, False) for pattern in _secrets()]) == []


@pytest.mark.exhaustive  # the quick suite tries every thirtieth
@pytest.mark.parametrize("part", range(16))
def test_patterns_of_the_table_take_linear_time(part):
    assert slow(of_the_table()[part::16]) == []


def test_some_patterns_of_the_table_take_linear_time():
    assert slow(of_the_table()[::30]) == []

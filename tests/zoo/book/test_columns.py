"""Code that a reader sees is at most 88 columns wide, so that it fits on a page."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from diagnostics.rules.registry import all_rules

SHOWN_COLUMNS = 88  # as in noxfile.py, for ruff
ROOT = Path(__file__).resolve().parents[3]
SCRIPTS = ("bugs/[0-9]*/*.py", "solutions/*/*.py", "book/mysteries/*.py")
PAGES = ("*.md", "book/*.md", "book/[cegm]*/*.md", "solutions/*/*.md")
_FENCED = re.compile(
    r"^ *(?P<fence>`{3,})(?P<kind>[^\n]*)\n(?P<body>.*?)^ *(?P=fence) *$", re.MULTILINE | re.DOTALL
)
_OPTIONS = re.compile(r"\A---\n.*?^---\n", re.DOTALL | re.MULTILINE)  # of a cell: words for a figure are not code
_QUOTED = re.compile(r"\w+Error: ")  # a message is one line


def wide(text: str) -> list[str]:
    return [line for line in text.splitlines() if len(line) > SHOWN_COLUMNS and not _QUOTED.match(line)]


def code(page: str) -> Iterator[str]:
    """Yield the code blocks of a page, but not its other directives."""
    for block in _FENCED.finditer(page):
        if not block["kind"].startswith("{") or block["kind"].startswith(("{code-cell}", "{code-block}")):
            yield _OPTIONS.sub("", block["body"])


@pytest.mark.parametrize("pattern", SCRIPTS)
def test_scripts_are_narrow(pattern: str) -> None:
    scripts = sorted(ROOT.glob(pattern))
    assert scripts
    assert {str(s.relative_to(ROOT)): lines for s in scripts if (lines := wide(s.read_text("utf-8")))} == {}


@pytest.mark.parametrize("pattern", PAGES)
def test_code_on_pages_is_narrow(pattern: str) -> None:
    found = {}
    for page in sorted(ROOT.glob(pattern)):
        if lines := [line for block in code(page.read_text("utf-8")) for line in wide(block)]:
            found[str(page.relative_to(ROOT))] = lines
    assert found == {}


def test_code_on_the_pages_of_rules_is_narrow() -> None:
    blocks = {rule.name: list(code(inspect.getdoc(rule) or "")) for rule in all_rules()}
    assert any(blocks.values())
    assert {n: lines for n, shown in blocks.items() for block in shown if (lines := wide(block))} == {}


def test_a_wide_line_is_found() -> None:
    line = "x" * (SHOWN_COLUMNS + 1)
    page = f"```python\n{line}\n```\n\n```{{image}} a.svg\n{line}\n```\n\n{line}\n"
    assert [found for block in code(page) for found in wide(block)] == [line]

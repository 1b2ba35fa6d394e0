"""Looks for patterns in the source of a script that a test writes."""

from __future__ import annotations

import ast
from textwrap import dedent

from diagnostics.collectors.source.read import patterns_in
from diagnostics.facts.where import Where
from diagnostics.facts.written import WrittenPattern, WrittenPatterns


def found(kind: str, source: str) -> list[WrittenPattern]:
    """Return the patterns of one kind in a source."""
    patterns = WrittenPatterns(tuple(patterns_in(ast.parse(dedent(source)), "train.py")))
    return list(patterns.of(kind))


def names_and_lines(kind: str, source: str) -> list[tuple[str | int, ...]]:
    """Return the names of each such pattern, followed by its line."""
    return [(*one.names, one.where.line) for one in found(kind, source)]


def written(kind: str, *names: str, line: int = 9, function: str = "<module>") -> WrittenPatterns:
    """Return a fact with one pattern, for a rule."""
    return WrittenPatterns((WrittenPattern(kind, names, Where("train.py", line, function)),))

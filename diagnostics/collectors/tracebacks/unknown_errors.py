"""Reads `unknown_errors.toml`: what is said of failures that no rule knows, by their words, lines and names."""

from __future__ import annotations

import functools
import re
import tomllib
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".toml")


@functools.cache
def tables(file: Path) -> dict[str, Any]:
    """Return the tables of a TOML file."""
    return tomllib.loads(file.read_text("utf-8"))


def entries(name: str) -> Any:
    """Return a table of the file about unknown errors, or its rows in order."""
    return tables(FILE)[name]


def search(row: dict[str, Any], text: str) -> re.Match[str] | None:
    """Search a text for the pattern of a row."""
    return compiled(row["pattern"]).search(text)


@functools.cache
def compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern of the file, once."""
    return re.compile(pattern)


@functools.cache
def of_packages(name: str) -> re.Pattern[str]:
    """Return a pattern of the names of packages, or of what is in them."""
    named = entries("packages")
    return compiled(re.sub(r"@(\w+)@", lambda found: str(named[found[1]]), named[name]))

"""The rules that a project ignores, each with its reason."""

from __future__ import annotations

import difflib
import functools
import os
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import InvalidInput, typed_message, what
from .rules.registry import all_rules, names_of_own
from .text.join import listed

EXAMPLE = """\
[tool.diagnostics.ignore]
sorted-by-label = "the stream is in order of time on purpose"\
"""
_TAKES = f"It takes a table `ignore`:\n{EXAMPLE}"


def from_option(names: str) -> dict[str, str]:
    """Read `--ignore RULE[,RULE]` into rule to reason; on a command line every reason is empty.

    Raises:
        InvalidInput: there is no rule of that name.
    """
    given = [name.strip() for name in names.split(",") if name.strip()]
    check_names(given, "--ignore")
    return dict.fromkeys(given, "")


def from_pyproject(folder: Path) -> dict[str, str]:
    """Read the table `[tool.diagnostics.ignore]` of the nearest pyproject.toml, from `folder` upwards.

    Returns:
        Rule to reason; empty without such a file or table.

    Raises:
        InvalidInput: the file cannot be read, there is no rule of a name, or a reason is missing.
    """
    reasons, mistakes = _read(folder)
    if mistakes:
        raise InvalidInput(mistakes[0])
    return reasons


def of_project() -> tuple[dict[str, str], tuple[str, ...]]:
    """Read the same from the working directory on, for a run that no mistake in a file may prevent.

    Returns:
        Rule to reason, and the mistakes, whose entries are left out.
    """
    try:
        return _read(Path.cwd())
    except FileNotFoundError:  # the working directory is gone
        return {}, ()
    except Exception as fault:
        return {}, (f"[tool.diagnostics] was not read: {typed_message(fault)}",)


def _read(folder: Path) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return the entries that can be used, and what is wrong with the others."""
    file = next((f for p in (folder, *folder.parents) if os.path.isfile(f := p / "pyproject.toml")), None)
    if file is None:
        return {}, ()
    try:
        tool = _tool(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return {}, (f"{file} cannot be read: {error}.",)
    table = tool.get("diagnostics", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(table, Mapping):
        return {}, (f"[tool.diagnostics] in {file} holds {what(table)}. {_TAKES}",)
    unknown = sorted(set(table) - {"ignore"})
    mistakes = [f"[tool.diagnostics] in {file} holds {', '.join(unknown)}. {_TAKES}"] if unknown else []
    place, ignore = f"[tool.diagnostics.ignore] in {file}", table.get("ignore", {})
    if not isinstance(ignore, Mapping):
        takes = f"It takes rule names, each with a reason:\n{EXAMPLE}"
        return {}, (*mistakes, f"{place} is {what(ignore)}. {takes}")
    reasons = {}
    for name, reason in ignore.items():
        if (mistake := _mistake(name, reason, place)) is None:
            reasons[name] = reason
        else:
            mistakes.append(mistake)
    return reasons, tuple(mistakes)


@functools.lru_cache(maxsize=1)
def _tool(text: str) -> Any:
    """Parse a pyproject.toml, which takes longer than most reports, once for the same text."""
    return tomllib.loads(text).get("tool", {})


def _mistake(name: str, reason: Any, place: str) -> str | None:
    try:
        check_names([name], place)
    except InvalidInput as unknown:
        return str(unknown)
    if not isinstance(reason, str) or not reason.strip():
        return f"{place} gives no reason for {name}. Write why it is ignored:\n{EXAMPLE}"
    return None


def check_names(names: Iterable[str], place: str) -> None:
    """Refuse names that no rule has; `place` says where they were given.

    Raises:
        InvalidInput: there is no rule of that name.
    """
    own = names_of_own()  # importing every rule takes longer than explaining a traceback
    for name in names:
        if name not in own and name not in (known := [rule.name for rule in all_rules()]):
            near = difflib.get_close_matches(name, known, n=3)
            hint = f"Did you mean {listed(near, 'or')}?" if near else "`diagnose rules` lists all rules."
            raise InvalidInput(f"{place} names {name!r}, but there is no such rule. {hint}")

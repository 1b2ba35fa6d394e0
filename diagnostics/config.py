"""The rules that a project ignores, each with its reason."""

from __future__ import annotations

import difflib
import functools
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from .errors import InvalidInput, what
from .rules.registry import all_rules, names_of_own
from .text.join import listed

EXAMPLE = """\
[tool.diagnostics.ignore]
sorted-by-label = "the stream is in order of time on purpose"\
"""


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
    file = next((f for p in (folder, *folder.parents) if (f := p / "pyproject.toml").is_file()), None)
    if file is None:
        return {}
    try:
        tool = _tool(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InvalidInput(f"{file} cannot be read: {error}.") from None
    table = tool.get("diagnostics", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(table, Mapping) or (unknown := sorted(set(table) - {"ignore"})):
        named = ", ".join(unknown) if isinstance(table, Mapping) else what(table)
        raise InvalidInput(f"[tool.diagnostics] in {file} holds {named}. It takes a table `ignore`:\n{EXAMPLE}")
    return _reasons(table.get("ignore", {}), file)


@functools.lru_cache(maxsize=1)
def _tool(text: str) -> Any:
    """Parse a pyproject.toml, which takes longer than most reports, once for the same text."""
    return tomllib.loads(text).get("tool", {})


def _reasons(ignore: Any, file: Path) -> dict[str, str]:
    place = f"[tool.diagnostics.ignore] in {file}"
    if not isinstance(ignore, Mapping):
        raise InvalidInput(f"{place} is {what(ignore)}. It takes rule names, each with a reason:\n{EXAMPLE}")
    check_names(ignore, place)
    for name, reason in ignore.items():
        if not isinstance(reason, str) or not reason.strip():
            raise InvalidInput(f"{place} gives no reason for {name}. Write why it is ignored:\n{EXAMPLE}")
    return dict(ignore)


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

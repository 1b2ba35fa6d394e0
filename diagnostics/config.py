"""The settings of a project: ignored rules, severities, what fails and is shown, and what holds for some files."""

from __future__ import annotations

import contextlib
import functools
import os
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

from .engine.finding import SEVERITIES
from .errors import InvalidInput, typed_message, what
from .report.policy import Level, Policy
from .rules.registry import names_without_rule
from .text.join import listed

EXAMPLE = """\
[tool.diagnostics.ignore]
sorted-by-label = "the stream is chronological on purpose"\
"""
SEVERITY = """\
[tool.diagnostics.severity]
dead-units = "note"\
"""
OVERRIDE = """\
[[tool.diagnostics.overrides]]
path = "tests/*"
severity = {dead-units = "off"}\
"""
OVERRIDABLE = ("fail-on", "ignore", "severity")
KEYS = (*OVERRIDABLE, "overrides", "show-batch")
FAIL_ON = ("error", "warning", "never")
LEVELS = (*SEVERITIES, "off")
_TAKES = f"It takes {listed(KEYS)}:\n{EXAMPLE}"
_batch_shown: bool | None = None  # of `diagnose run`, whose options count; None outside of it


def from_option(names: str) -> dict[str, str]:
    """Read `--ignore RULE[,RULE]` into rule to reason; on a command line every reason is empty.

    Raises:
        InvalidInput: there is no rule of that name.
    """
    given = [name.strip() for name in names.split(",") if name.strip()]
    check_names(given, "--ignore")
    return dict.fromkeys(given, "")


def from_pyproject(folder: Path) -> Policy:
    """Read the table `[tool.diagnostics]` of the nearest pyproject.toml, from `folder` upwards.

    Returns:
        What it sets; the same as without settings if there is no such file or table.

    Raises:
        InvalidInput: the file cannot be read, there is no rule of a name, or a reason is missing.
    """
    policy, mistakes = _read(folder)
    if mistakes:
        raise InvalidInput(mistakes[0])
    return policy


def of_project() -> tuple[Policy, tuple[str, ...]]:
    """Read the same from the working directory on, for a run that no mistake in a file may prevent.

    Returns:
        What is set, and the mistakes, whose entries are left out.
    """
    try:
        return _read(Path.cwd())
    except FileNotFoundError:  # the working directory is gone
        return Policy(), ()
    except Exception as fault:
        return Policy(), (f"[tool.diagnostics] was not read: {typed_message(fault)}",)


def shows_batch() -> bool:
    """Whether reports show the first batches, as `diagnose run` or the project's settings say."""
    return of_project()[0].show_batch if _batch_shown is None else _batch_shown


@contextlib.contextmanager
def batch_shown(shown: bool) -> Iterator[None]:
    """Let `shows_batch` return this within, whatever the settings say."""
    global _batch_shown
    _batch_shown = shown
    try:
        yield
    finally:
        _batch_shown = None


def _read(folder: Path) -> tuple[Policy, tuple[str, ...]]:
    """Return the entries that can be used, and what is wrong with the others."""
    file = next((f for p in (folder, *folder.parents) if os.path.isfile(f := p / "pyproject.toml")), None)
    if file is None:
        return Policy(), ()
    try:
        tool = _tool(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        return Policy(), (f"{file} cannot be read: {error}.",)
    table = tool.get("diagnostics", {}) if isinstance(tool, Mapping) else {}
    if not isinstance(table, Mapping):
        return Policy(), (f"[tool.diagnostics] in {file} holds {what(table)}. {_TAKES}",)
    reader = _Reader(str(file))
    policy = reader.policy(table, "tool.diagnostics", KEYS)
    overrides = []
    given = table.get("overrides", [])
    if not isinstance(given, list) or not all(isinstance(one, Mapping) for one in given):
        reader.mistakes.append(f"overrides of [tool.diagnostics] in {file} is {what(given)}. Write:\n{OVERRIDE}")
        given = []
    for one in given:
        globs = [one["path"]] if isinstance(one.get("path"), str) else one.get("path")
        if not isinstance(globs, list) or not globs or not all(isinstance(glob, str) for glob in globs):
            reader.mistakes.append(f"[[tool.diagnostics.overrides]] in {file} has no path. Write:\n{OVERRIDE}")
            continue
        within = reader.policy(one, "tool.diagnostics.overrides", (*OVERRIDABLE, "path"))
        overrides.append((tuple(globs), within))
    return replace(policy, overrides=tuple(overrides), folder=file.parent), tuple(reader.mistakes)


class _Reader:
    """Reads tables of settings, and collects the mistakes in them."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.mistakes: list[str] = []

    def policy(self, table: Mapping[str, Any], name: str, keys: tuple[str, ...]) -> Policy:
        if unknown := sorted(set(table) - set(keys)):
            self.mistakes.append(f"[{name}] in {self._file} holds {', '.join(unknown)}. {_TAKES}")
        fail_on = table.get("fail-on")
        if fail_on is not None and fail_on not in FAIL_ON:
            self.mistakes.append(
                f"fail-on of [{name}] in {self._file} is {fail_on!r}. It takes one of: {', '.join(FAIL_ON)}."
            )
            fail_on = None
        if not isinstance(shown := table.get("show-batch", True), bool):
            self.mistakes.append(
                f"show-batch of [{name}] in {self._file} is {shown!r}. It takes true or false; until then "
                "the first batches are not shown."
            )
            shown = False
        ignores, levels = self._entries(table, name, "ignore"), self._entries(table, name, "severity")
        return Policy(ignores, cast(dict[str, Level], levels), fail_on, show_batch=shown)

    def _entries(self, table: Mapping[str, Any], name: str, key: str) -> dict[str, str]:
        place, entries = f"[{name}.{key}] in {self._file}", table.get(key, {})
        takes, example = ("a reason", EXAMPLE) if key == "ignore" else ("a severity", SEVERITY)
        if not isinstance(entries, Mapping):
            self.mistakes.append(f"{place} is {what(entries)}. It takes rule names, each with {takes}:\n{example}")
            return {}
        kept = {}
        for rule, value in entries.items():
            wrong = names_without_rule([rule], place)
            if not wrong and key == "ignore" and (not isinstance(value, str) or not value.strip()):
                wrong = [f"{place} gives no reason for {rule}. Write why it is ignored:\n{EXAMPLE}"]
            if not wrong and key == "severity" and value not in LEVELS:
                wrong = [f"{place} gives {rule} {value!r}. A severity is one of: {', '.join(LEVELS)}."]
            self.mistakes += wrong
            if not wrong:
                kept[rule] = value
        return kept


@functools.lru_cache(maxsize=1)
def _tool(text: str) -> Any:
    """Parse a pyproject.toml, which takes longer than most reports, once for the same text."""
    return tomllib.loads(text).get("tool", {})


def check_names(names: Iterable[str], place: str) -> None:
    """Refuse names that no rule has; `place` says where they were given.

    Raises:
        InvalidInput: there is no rule of that name.
    """
    for mistake in names_without_rule(names, place):
        raise InvalidInput(mistake)

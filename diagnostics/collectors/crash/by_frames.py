"""Recognises failures by message, line and file together, where the message alone has several causes.

A bias that a layer was made without, a gradient that no backward pass gave, an option that was not passed: each is
None for one reason, which the line shows. A library's own check, whose words no row of the table has, is known by
the frames: they prove whose it is, and which of the user's lines led there.
"""

from __future__ import annotations

import ast
import functools
from pathlib import Path
from typing import Any

from diagnostics.collectors.crash.live.expression import is_check, told, values_told
from diagnostics.collectors.tracebacks.nature import advice_in, kind_apart_from_refusals, package_of
from diagnostics.collectors.tracebacks.python_errors import MOST_READ, held, parsed
from diagnostics.collectors.tracebacks.unknown_errors import entries, of_packages, tables
from diagnostics.facts.crash import CrashFacts, KnownFailure

from .frames import Crash

RULE = "mismatched-call"
LINE_CAUSES = Path(__file__).with_name("line_causes.toml")
MOST_SAID = 320  # characters of the message in the cause

_IMPORTS = ("ImportError", "ModuleNotFoundError", "PackageNotFoundError", "NameError")


def refused_call(crash: CrashFacts) -> tuple[KnownFailure, ...]:
    """Recognise a library's own check, or a compiled operation of it, that refuses what it is given.

    Returns:
        Nothing if no row of the refusals knows the last frame, if the failure is of the network, of files or of
        Python's own, or if there is no message.
    """
    last, said = (crash.frames or (None,))[-1], " ".join(crash.message.split())
    if last is None or not said or (last.yours and (is_check(crash) or not values_told(crash))):
        return ()
    exception = crash.exception.rpartition(".")[2]
    for row in entries("refusals"):
        if (found := held(row, crash, f"{exception}: {said}")) is not None:
            break
    else:
        return ()
    if exception not in _IMPORTS and kind_apart_from_refusals(crash) is not None:
        return ()
    shown = said if len(said) <= MOST_SAID else f"{said[:MOST_SAID].rsplit(' ', 1)[0]} ..."
    groups = found | {
        "library": package_of(last),
        "function": last.function,
        "line": f"{last.file}:{last.line}",
        "values": values_told(crash),
        "told": told(crash),
        "at": "" if crash.where is None else f", at {crash.where}",
        "look": _look_of(crash),
        "said": shown,
        "path": last.file,
    }
    advised = [f"as the message says: {advice}" for advice in advice_in(crash.message)]
    fixes = [fix.format_map(groups) for fix in row["fix"] if not advised or fix != "{look}"]
    cause = row["cause"].format_map(groups).strip()
    return (KnownFailure(row["rule"], cause, (*advised, *fixes), said[:MOST_SAID]),)


def _look_of(crash: CrashFacts) -> str:
    line = next((frame.code or "" for frame in reversed(crash.frames) if frame.yours), "")
    owner = _called_without_arguments(line)
    excludes = of_packages("excludes").search(crash.message[:MOST_SAID]) is not None
    kind = "values" if owner is None and not excludes else "options" if owner is None else "owner"
    return str(entries("look")[kind].format(owner=owner))


def _called_without_arguments(line: str) -> str | None:
    """Return the object whose method is the only call of a line, without arguments; None of any other line."""
    tree = parsed(line.strip())
    calls = [] if tree is None else [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if len(calls) != 1 or calls[0].args or calls[0].keywords or not isinstance(calls[0].func, ast.Attribute):
        return None
    return ast.unparse(calls[0].func.value)


def line_cause(crash: Crash) -> KnownFailure | None:
    """Recognise which value a line used, where one of its parts says why it is what it is.

    Returns:
        None if no row knows the message, or if the line shows no such part, or several.
    """
    message = crash.facts.message[:MOST_READ]
    for row in _rows() if crash.facts.frames else ():
        found = held(row, crash.facts, message)
        if found is not None and row.get("exception", crash.facts.exception) == crash.facts.exception:
            found["library"] = package_of(crash.facts.frames[-1])
            fixes = tuple(fix.format_map(found) for fix in row["fix"])
            told = row["cause"].format_map(found)
            return KnownFailure(row.get("rule", RULE), told, fixes, message.splitlines()[0])
    return None


@functools.cache
def _rows() -> tuple[dict[str, Any], ...]:
    """Return a row for each use with each cause of the same kind."""
    table = tables(LINE_CAUSES)
    return tuple(
        {
            **use,
            **cause,
            "pattern": use["message"],
            "line": use.get("before", "") + cause["pattern"] + use.get("after", ""),
            "single": "first" not in cause,
        }
        for use in table["uses"]
        for cause in table["causes"]
        if cause["of"] == use["of"]
    )

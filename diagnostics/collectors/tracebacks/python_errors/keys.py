"""Says what a KeyError proves, from its key and the line that asked for it."""

from __future__ import annotations

import re

from diagnostics.facts.crash import CrashFacts

from ..unknown_errors import entries, search
from .lines import expression_before, outermost

# A KeyError that the registries of mmcv and mmengine raise again, with the name of the class that met it.
_REGISTRIES = re.compile(r"^(?P<quote>['\"])(?:(?P<name>[A-Z]\w{1,80}): [\"']?){1,4}(?P<key>[\w.-]{1,80})")
_KEY = re.compile(
    r"""^(?:(?P<quote>['"])(?P<text>.{0,200})(?P=quote)|(?P<number>-?\d{1,20}))(?:$|[.,;)] |["”`])"""
    r"""|^['"](?P<open>[^'"]{1,40})$"""  # a page lost the other quote
)


def _field_of_format(crash: CrashFacts, text: str, line: str) -> str | None:
    around = " ".join((line, *(f"{frame.file} {frame.code or ''}" for frame in crash.frames[-4:])))[:2_000]
    for row in entries("formats"):
        if text in row["keys"].split("|") and search(row, around):
            return str(row["said"].format(key=repr(text)))
    return None


def key_of(crash: CrashFacts, message: str, line: str) -> str | None:
    """Say what usually leaves out an entry of that name; None if neither the key nor the line tells."""
    if within := _REGISTRIES.match(message.replace("\\", "")):
        return (
            f"{within['name']} looks for {within['key']!r} while it is made, and does not find it: its annotation "
            "file, or its part of the configuration, names the field otherwise or lacks it. Print both's keys."
        )
    found = _KEY.match(message)
    if found is None:
        return None
    text = found["text"] or found["open"]
    key = found[0].rstrip(".,;) ") if found["open"] is None else repr(text)
    holder = expression_before(line, rf"\[\s*(?P<mark>['\"]){re.escape(text)}(?P=mark)\s*\]") if text else None
    holder = holder or outermost(line) or expression_before(line, r"\[(?!['\"])")
    of_pandas = any(re.search(r"pandas[\\/]", frame.file) for frame in crash.frames)
    if text and not of_pandas and (of_format := _field_of_format(crash, text, line)) is not None:
        return of_format
    asked = f"{'pandas' if of_pandas else 'code' if crash.frames else 'text'} {holder or '?'} <- {key}"
    names = {"key": key, "text": text, "table": holder or "the table", "Table": holder or "The table"}
    return next((row["said"].format_map(names) for row in entries("keys") if search(row, asked)), None)

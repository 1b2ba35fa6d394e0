"""Says of a failure that no rule recognises what kind of failure it is, and whose line raised it."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.live.expression import told
from diagnostics.facts.crash import CrashFacts, FrameFacts

from .origin import origin_of
from .parse import NO_EXCEPTION
from .python_errors import held, proved
from .unknown_errors import entries, of_packages

_MISSING_FILE = re.compile(
    r"No such file or directory|does not exist\b|(?:does not|doesn't) appear to have a file named"
)
_NO_FILE = re.compile(
    r"\[Errno 2\]|No such file or directory|['\"] is not a (?:file|directory)\b"
)  # whoever says so
_NAMED_FILE = re.compile(
    r"(?:^|[\s'\"`])(?:[A-Za-z]:|\.{0,2}|~|\w[\w.-]*)[\\/][^\s'\"`]{2,300}['\"`]? "
    r"(?:does not exist|doesn't exist|not exists?\b)"
)  # a path, and that there is nothing, whoever says so
_PLAIN = (
    "KeyError", "NameError", "UnboundLocalError", "AttributeError", "ModuleAttributeError", "ZeroDivisionError",
    "SyntaxError", "IndentationError", "TabError", "UnicodeDecodeError", "JSONDecodeError", "ParserError",
    "RecursionError", "ImportError", "StopIteration",
)  # fmt: skip
"""What says enough by its name, wherever it was raised: the others may be a library's judgement of tensors."""

_CHECKS = (
    "ValueError",
    "TypeError",
    "AssertionError",
    "NotImplementedError",
    "RuntimeError",
    "Exception",
    "OSError",
)


def error_category(crash: CrashFacts) -> str | None:
    """Say what kind of failure it is, and what its line and numbers prove; None if nothing is known of it.

    If the message does not show the kind of failure, the answer still names the line that raised it.
    """
    if crash.message == NO_EXCEPTION:
        return _cut_off(crash)
    kind = kind_apart_from_refusals(crash)
    more = proved(crash) if kind else None
    return " ".join(part for part in (kind or origin_of(crash), more, told(crash)) if part) or None


def _cut_off(crash: CrashFacts) -> str:
    """Say that the line with the reason is missing, and where the text ends."""
    last = crash.frames[-1] if crash.frames else None
    ends = "" if last is None else f" The last frame shown is {last.function} ({last.file}:{last.line})."
    return f"The line with the exception is missing: it says why.{ends} Copy the text to its end."


def kind_apart_from_refusals(crash: CrashFacts) -> str | None:
    """Say in a sentence what kind of failure it is, where that is no matter of training; None if it may be one."""
    name, message = crash.exception, crash.message
    pythons_own = of_packages("pythons_own")
    for row in entries("outside"):
        if (groups := held(row, crash, f"{name}: {message}")) is not None:
            return str(row["said"].format_map(groups))
    if (
        name in entries("files")
        or (name in _CHECKS and _NAMED_FILE.search(message))
        or (name == "OSError" and _MISSING_FILE.search(message))
        or _NO_FILE.search(message)
    ):
        what = entries("files").get(name, "a file or folder is not where the code looks for it")
        return f"It is a failure of the file system, not of the training: {what}{_at(crash)}."
    last = crash.frames[-1] if crash.frames else None
    in_pythons_words = pythons_own.search(message) is not None and (
        message != "" or _is_standard(last) or (last is not None and last.yours)
    )
    if name in _PLAIN or (name in entries("python") and in_pythons_words):
        whose = "" if last is None else " of the code's own" if last.yours else f" raised in {last.file}"
        article = "an" if name[0] in "AEIOU" else "a"
        what = f"{entries('python')[name]}{_at(crash)}"
        return f"It is {article} {name}{whose}, not a failure of training that a rule knows: {what}."
    return None


def _is_standard(last: FrameFacts | None) -> bool:
    """Whether a frame is of Python's own library: those of packages are named from the package on."""
    return last is not None and not last.yours and re.match(r"[/\\]|[A-Za-z]:", last.file) is not None


def _at(crash: CrashFacts) -> str:
    """Name the user's own line; empty if there is none."""
    return "" if crash.where is None else f", at {crash.where}"

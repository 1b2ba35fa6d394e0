"""Says of a failure that no rule recognises what kind it is, whose line raised it, and what it advises."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.live.expression import told
from diagnostics.facts.crash import CrashFacts, FrameFacts

from .parse import NO_EXCEPTION
from .python_errors import held, proved
from .unknown_errors import entries, of_packages

MOST_READ = 2_000  # characters of a message
MOST_ADVISED = 240  # characters of a sentence of advice

_SENTENCE = re.compile(r"(?<=[a-z)\]'\"`0-9][.!?])\s+(?=[A-Z`'\"])|\n+")
_WITHIN = re.compile(r"[,;:] (?=(?:please|try|use|consider|make sure|you (?:should|need|must|have to|can))\b)")


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
    for row in entries("outside"):
        if (groups := held(row, crash, f"{name}: {message}")) is not None:
            return str(row["said"].format_map(groups | {"at": _at(crash)}))
    last = crash.frames[-1] if crash.frames else None
    # Files of Python's own library have a whole path: those of packages are named from the package on.
    no_package = last is not None and (last.yours or re.match(r"[/\\]|[A-Za-z]:", last.file) is not None)
    in_pythons_words = (message or no_package) and of_packages("pythons_own").search(message)
    if name in entries("python") and (in_pythons_words or name not in entries("also_of_tensors")):
        whose = "" if last is None else " of the code's own" if last.yours else f" raised in {last.file}"
        article = "an" if name[0] in "AEIOU" else "a"
        what = f"{entries('python')[name]}{_at(crash)}"
        return f"It is {article} {name}{whose}, not a failure of training that a rule knows: {what}."
    return None


def _at(crash: CrashFacts) -> str:
    """Name the user's own line; empty if there is none."""
    return "" if crash.where is None else f", at {crash.where}"


def origin_of(crash: CrashFacts) -> str | None:
    """Say whose line raised an unknown error, and what the message itself advises; None if it shows neither.

    Where a library's line raised it, that library is named, and the line of the user's that called it.
    """
    last = crash.frames[-1] if crash.frames else None
    advised = ". ".join(advice_in(crash.message))
    advice = f"The message itself says what to do: {advised}." if advised else ""
    if last is None:
        return advice or None
    if last.yours:
        return f"It was raised at {crash.where}. {advice}".strip()
    called = f", called from {crash.where}" if crash.where is not None else ""
    return f"{package_of(last)} raised it, in {last.function} ({last.file}:{last.line}){called}. {advice}".strip()


def advice_in(message: str) -> list[str]:
    """Return the sentences that say what to do, at most two."""
    sentences = (" ".join(said.split()) for said in _SENTENCE.split(message[:MOST_READ]))
    found: list[str] = []
    for sentence in sentences:
        within = "".join(_WITHIN.split(sentence, maxsplit=1)[1:])
        part = sentence if of_packages("advises").match(sentence) else within
        if 12 < len(part) <= MOST_ADVISED and not of_packages("is_told").match(part):
            found.append(part.rstrip("."))
    return found[:2]


def package_of(frame: FrameFacts) -> str:
    """Name the package of a file that is not the user's, which begins with the package's folder."""
    inside = re.split(r"[\\/](?:lib[\\/]python[\d.]+|lib)[\\/]", frame.file, maxsplit=1)[-1]
    parts = [part for part in re.split(r"[\\/]", inside) if part not in ("", "site-packages", "dist-packages")]
    return parts[0].removesuffix(".py") if parts else "A library"

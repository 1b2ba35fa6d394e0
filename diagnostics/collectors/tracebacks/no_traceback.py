"""Reads texts without a traceback: the last lines of a process that was killed, or a message in a sentence.

Lines that a library logs in every run, and that people take for the cause, are said to be none.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from diagnostics.collectors.crash.messages.table import find
from diagnostics.facts.crash import CrashFacts

from .unknown_errors import entries, of_packages, search

MOST_LINES = 60  # of a text that is taken for a quoted message; a longer one is a log, in which words mean less

_WIDE = str.maketrans(
    {"\N{FULLWIDTH COLON}": ": ", "\N{FULLWIDTH COMMA}": ", ", "\N{RIGHT SINGLE QUOTATION MARK}": "'"}
)
_QUOTES = ("`", '"', "**", ": ", "Invalid argument: ")  # what stands before a quoted message
_ERROR = r"(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)"
_COMMENT = re.compile(r"  # [^\n]*")  # of a line of source: what it may raise did not happen
_NAMED = re.compile(  # in backticks to the next of them, else to the end of the line
    rf"`(?P<quoted>{_ERROR}): (?P<words>[^`]+)|(?<![A-Za-z0-9_.])(?P<name>{_ERROR}): ?(?P<message>.+)"
)


def last_words(text: str) -> CrashFacts | None:
    """Return how the process ended, if the text says it; None if it does not.

    A shell writes no more than ``Killed``; the exception is then called ``SIGKILL``, after the signal. Of an abort
    it is the C++ exception's name: ``AcceleratorError``, ``bad_alloc``.
    """
    if (told := next(endings(text), None)) is not None:
        return told
    if ended := find(text, "launchers"):
        return CrashFacts("ChildFailedError", ended[0], (), live=False)
    if (killed := find(text, "killed")) is not None:
        return CrashFacts("SIGKILL", killed[0], (), live=False)
    return next(endings(text, "killed"), None)


def endings(text: str, table: str = "endings") -> Iterator[CrashFacts]:
    """Yield how the process ended, or what else a known wording says, by the rows of a table."""
    for row in entries(table):
        if (found := search(row, text)) is not None:
            said = (row["exception"], row.get("message", "{0}"))
            exception, message = (words.format(found[0], **found.groupdict()) for words in said)
            yield CrashFacts(exception, message.strip(" \n`*"), (), live=False)


def quoted_messages(text: str) -> Iterator[CrashFacts]:
    """Yield a short text, and what it quotes, as messages of an exception without a name; nothing for a whole log.

    People quote an error in a sentence, in bold, or with the markup of the page that they copied it from.
    """
    plain = html.unescape(re.sub(r"<br */?>", "\n", text)).translate(_WIDE)
    plain = "\n".join(line for line in plain.splitlines() if _may_end_a_run(line)).strip()
    if not plain or plain.count("\n") >= MOST_LINES:
        return
    yield CrashFacts("", plain, (), live=False)
    for mark in _QUOTES:
        _, found, quoted = plain.partition(mark)
        if found and quoted.strip():
            yield CrashFacts("", quoted.strip(), (), live=False)


def without_harmless(text: str) -> str:
    """Leave lines that mean nothing out of a text, in which they may read like an error."""
    rows = entries("harmless")
    return "\n".join(line for line in text.split("\n") if not any(search(row, line) for row in rows))


def harmless(text: str) -> CrashFacts | None:
    """Take the last such line of a text without an error, with what it means; None if it has none."""
    for line in reversed(text.splitlines()):
        for row in entries("harmless"):
            if (found := search(row, line)) is not None:
                of_another = "Another message has the cause, if one is in the log."
                said = f"This line alone is no error. {row['said']} {of_another}"
                return CrashFacts("", found[0], (), live=False, nature=said)
    return None


def _may_end_a_run(line: str) -> bool:
    if of_packages("ends_run").search(line):
        return True
    is_none = of_packages("no_error").search(line) or of_packages("listed").match(line)
    return not (is_none or next(endings(line, "warnings"), None))


def lines_of(quoted: CrashFacts) -> Iterator[CrashFacts]:
    """Yield each line of a quoted message by itself, without quotes, and with the exception that it names."""
    for line in quoted.message.splitlines():
        name, message = "", line
        if (named := _NAMED.search(line)) is not None:
            name, message = named["quoted"] or named["name"], named["words"] or named["message"]
        yield CrashFacts(name.rpartition(".")[2], _unquoted(message), (), live=False)


def _unquoted(message: str) -> str:
    """Remove the marks around a message; a quote at its beginning alone is part of it."""
    plain = message.strip(' `*"“”')
    return plain[1:-1] if plain[:1] == plain[-1:] == "'" and plain.count("'") == 2 else plain


def named_error(text: str) -> CrashFacts | None:
    """Return the last error that a short text names (``I get `ValueError: ...`, why?``); None if none.

    Python's own words are known without the name of their exception, too (``list index out of range``).
    """
    for message in quoted_messages(text):
        lines = list(lines_of(message))
        named = (line for line in reversed(lines) if line.exception)
        plain = (_COMMENT.sub("", line.message) for line in lines)
        return next(named, None) or next((own for line in plain for own in endings(line, "words")), None)
    return None

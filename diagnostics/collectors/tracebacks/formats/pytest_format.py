"""Rewrites the failures that pytest reports, in its long, short and one-line style, as Python prints them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..clean import START, Line

CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)

LOCALS = 200  # lines of variables between what was said and where, at most

_SAID = re.compile(r"^E(?: {3}(?P<words>.*)| *)$")
_PLACE = re.compile(
    r"^(?P<file>(?:[A-Za-z]:)?[^\s:][^:\n]*?):(?P<line>\d+): "
    r"(?:in (?P<function>\S+)|(?P<exception>[A-Za-z_][\w.]*)(?:: .*)?)? *$"
)
_TITLE = re.compile(r"^_{3,} (?P<name>\S.*?) _{3,}$")
_SECTION = re.compile(r"^(?:={3,} .* ={3,}|-{3,} Captured .* -{3,})$")
_DEFINITION = re.compile(r"^ {4}(?:async )?def (?P<name>\w+)\(")
_MARKED = re.compile(r"^> {3,}(?P<code>\S.*)$")
_EXCEPTION = re.compile(r"^[A-Za-z_][\w.]*(?::(?: |$)|$)")
_ONE_LINE = re.compile(
    r"^(?P<file>(?:[A-Za-z]:)?[^\s:][^:\n]*?):(?P<line>\d+): (?P<said>(?:\w+\.)*\w*(?:Error|Exception)(?:: .*)?)$"
)


def rewritten(lines: list[Line]) -> list[Line]:
    """Return the lines with every failure that pytest reports as a traceback of Python's; all others stay."""
    said = [number for number, line in enumerate(lines) if line.text[:1] == "E" and _SAID.match(line.text)]
    if not said:
        return list(_of_one_line(lines))
    found: list[Line] = []
    done = 0
    for first, end in _runs(said):
        start, place = _beginning(lines, done, first), _place_after(lines, end)
        frames = [*_frames(lines[start:first]), *(_frames(lines[start:first], place) if place else ())]
        if frames:  # else lines that happen to look so
            found += [*lines[done:start], Line(lines[start].number, f"{START}:"), *frames]
            found += _message(lines[first:end], place)
        else:
            found += lines[done:end]
        done = end
    return [*found, *lines[done:]]


def _of_one_line(lines: list[Line]) -> Iterator[Line]:
    reported = False
    for line in lines:
        reported = reported or (line.text.startswith("===") and " FAILURES " in line.text)
        if reported and (found := _ONE_LINE.match(line.text)):
            place = f'  File "{found["file"]}", line {found["line"]}, in <module>'
            yield from (Line(line.number, text) for text in (f"{START}:", place, found["said"]))
        else:
            yield line


def _runs(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the beginning and end of each run of successive numbers."""
    first = numbers[0]
    for one, following in pairwise([*numbers, -1]):
        if following != one + 1:
            yield first, one + 1
            first = following


def _beginning(lines: Sequence[Line], done: int, first: int) -> int:
    """Find where the report of this exception begins, going back from its message."""
    begun = first
    for number in range(first - 1, done - 1, -1):
        text = lines[number].text
        if _TITLE.match(text) or _SECTION.match(text):
            return number
        if text.strip() in CHAINED:
            return number + 1
        if _DEFINITION.match(text) or _MARKED.match(text) or _PLACE.match(text):
            begun = number
    return begun


def _place_after(lines: Sequence[Line], end: int) -> Line | None:
    """Return the line after the message that names place and exception; short style has none."""
    for line in lines[end : end + LOCALS]:
        place = _PLACE.match(line.text)
        if place is not None and place["exception"]:
            return line
        if place or _TITLE.match(line.text) or _SECTION.match(line.text) or line.text.strip() in CHAINED:
            break
    return None


def _frames(lines: Sequence[Line], last: Line | None = None) -> Iterator[Line]:
    """Yield each frame as two lines: pytest writes the place below the code, or, in short style, above it.

    Args:
        lines: of the report of one exception.
        last: the line that names the last place; then only that frame is yielded.
    """
    function, code = "<module>", ""
    for index, (number, text) in enumerate(lines):
        if title := _TITLE.match(text):
            function = title["name"].split("[")[0].rpartition(".")[2].split()[-1]
        elif defined := _DEFINITION.match(text):
            function = defined["name"]
        elif marked := _MARKED.match(text):
            code = marked["code"]
        elif (place := _PLACE.match(text)) and not place["exception"]:
            if place["function"]:
                following = "".join(line.text for line in lines[index + 1 : index + 2])
                code = following if following.startswith("    ") else ""
            if last is None:
                yield from _frame(number, place, place["function"] or function, code)
            code = ""
    if last is not None and (place := _PLACE.match(last.text)):
        yield from _frame(last.number, place, function, code)


def _frame(number: int, place: re.Match[str], function: str, code: str) -> Iterator[Line]:
    yield Line(number, f'  File "{place["file"]}", line {place["line"]}, in {function}')
    yield Line(number, f"    {code.strip()}")


def _message(said: Sequence[Line], place: Line | None) -> Iterator[Line]:
    """Yield the message without pytest's margin, the exception's name first."""
    words = [(match["words"] if (match := _SAID.match(line.text)) else None) or "" for line in said]
    margin = len(words[0]) - len(words[0].lstrip())
    words = [text[margin:] if not text[:margin].strip() else text for text in words]
    if not _EXCEPTION.match(words[0]):  # of an assertion only the expression is shown
        named = None if place is None else _PLACE.match(place.text)
        words[0] = f"{named['exception'] if named else 'AssertionError'}: {words[0]}"
    yield from (Line(line.number, text) for line, text in zip(said, words, strict=True))

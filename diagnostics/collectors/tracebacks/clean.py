"""Strips from a pasted text what terminals, loggers and launchers added to the lines that Python printed.

Colours, progress bars and the line ends of other systems go. What stands before every line of a traceback (a
logger's stamp, a rank, a container's name) goes too, and the lines of different processes come apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .unknown_errors import of_packages

START = "Traceback (most recent call last)"

WHOLE = 2**19  # characters; of a longer text only what is near a traceback is looked at
BEFORE, AFTER = 20_000, 60_000  # characters that count as near
LONGEST_LINE = 20_000  # characters; TensorFlow writes a whole batch into one
LONGEST_PREFIX = 200  # characters
MOST_PREFIXES = 512  # as many ranks as are told apart
NEAR = 60  # lines in which a traceback's first frame is looked for

_MARK = re.compile(rf"{re.escape(START)}|File \"|Cell In|(?:Error|Exception|Interrupt)\b")
_ESC = r"(?:\x1b|␛|\^\[|\\x1b|\\u001b|\\033)"  # the character, and how pages and editors show it
_ANSI = re.compile(rf"{_ESC}\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Z0-9]")
_BARE_COLOUR = re.compile(r"\[(?:0|[0-9]{1,2};[0-9;]{1,12}|[349][0-9])?m")  # where the escape itself was lost
_INVISIBLE = {0: None, 8: None, 0x200B: None, 0xFEFF: None, 0xA0: " "}
# Quotes as forums and word processors set them.
_PLAIN = _INVISIBLE | {0x2018: "'", 0x2019: "'", 0x201C: '"', 0x201D: '"'}
_ESCAPED = re.compile(
    rf"(?P<quote>[\"']?)(?P<start>{re.escape(START)}:(?:\\+r)?\\+n\s{{0,40}}(?:\\t)?\s{{0,40}}File )"
)
_ESCAPE = re.compile(r"\\+(?:u(?P<code>[0-9a-fA-F]{4})|(?P<letter>[nrt\"'/\\]))")
_LETTERS = {"n": "\n", "r": "", "t": "\t"}
_LINK = re.compile(  # as Colab and VS Code copy a place
    r"\[([^\[\]\n]{1,400})\]\((?:https?|file|vscode[\w-]{0,40}):[^)\n]{0,2000}\)"
)
_BOLD = re.compile(  # around a traceback's lines, where a page's markup was pasted with them
    r"^(?P<margin>[ \t>]*)(?:\*\*|__)(?=File \"|Traceback|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b)"
    r"|(?<=\S)\*\*[ \t]*$"
)
_CUT_IN_PATH = re.compile(r'^[^"]*\bFile "[^"]{20,}$')  # by the right edge of a terminal

_CALLED_INIT = re.compile(r"\binit\((?!\) (?:got|missing|takes))")  # a function of that name, as wandb.init(...)

_TIME = (
    r"\d{4}[-/.]\d\d[-/.]\d\d[T ,_]+\d\d:\d\d:\d\d(?:[.,:]\d+)?(?: ?(?:Z|UTC|GMT|[+-]\d\d:?\d\d))?",
    r"[A-Z][a-z]{2} +\d{1,2} \d\d:\d\d:\d\d(?:\.\d+)?",  # syslog
    r"[DIWEF]\d{4} \d\d:\d\d:\d\d\.\d+",  # glog, absl
    r"\d\d[-/.]\d\d[-/.]\d\d(?:\d\d)? \d\d:\d\d:\d\d(?:[.,]\d+)?",
    r"\d\d:\d\d:\d\d(?:[.,]\d+)?",
    r"(?<![\w.=])\d+\.\d+(?![\w.])",  # seconds, and no address
)
TIME = re.compile("|".join(_TIME))
LEVEL = re.compile(r"\b(?:DEBUG|INFO|WARN(?:ING)?|ERROR|CRITICAL|FATAL)\b", re.IGNORECASE)
_START_LINE = re.compile(
    rf"^(?P<before>.*?)(?:[\w.]{{1,80}} {{2,40}}|Original |\+ Exception Group |[╭┌+][─-]+ )?{re.escape(START)}"
)
_FRAME = re.compile(
    r"\s{0,80}(?:[>|│+]\s{0,80})?(?:File |Cell In|Input In|<ipython-input|[❱>] *\d|-{1,80}> \d|\S{1,400}\.py:\d+)"
)
_RANK = re.compile(
    r"\brank[ _:=]*(\d+)|\[(?:default|trainer|worker)_?(\d+)\]|^\s*(\d+):|^\[(?:\d+,)?(\d+)\]<|mpirank:(\d+)",
    re.IGNORECASE,
)


class Line(NamedTuple):
    """A line, and its number in the text, counted from 1."""

    number: int
    text: str


@dataclass(frozen=True)
class Stream:
    """The lines of one process, as far as they can be told apart.

    Attributes:
        process: what its prefix calls it: ``rank 1``, ``trainer-1``; None if it has no name.
    """

    process: str | None
    lines: list[Line] = field(default_factory=list)


def streams(text: str) -> list[Stream]:
    """Return the lines of a text, cleaned, those of each process by themselves; the first stream has no prefix."""
    lines = [line for first, part in _near_marks(text) for line in _cleaned(part, first)]
    prefixes = _prefixes(lines)
    found = [Stream(None), *(Stream(_process(prefix)) for prefix in prefixes)]
    either = re.compile("|".join(f"({_pattern(prefix)})" for prefix in prefixes))
    for line in lines:
        match = either.match(line.text)
        place, end = (0, 0) if match is None else (match.lastindex or 0, match.end())
        found[place].lines.append(Line(line.number, line.text[end:]))
    return found


def with_underscores(text: str) -> str:
    """Write __init__ again where a page took its underscores for bold; a method called init is left as it is."""
    if ".init() " in text:
        text = of_packages("underscored").sub(r"\1.__init__", text)
    if "TypeError: init() " in text and "__" not in text and _CALLED_INIT.search(text) is None:
        text = text.replace("TypeError: init() ", "TypeError: __init__() ")
    return text


def _near_marks(text: str) -> Iterator[tuple[int, str]]:
    """Yield the parts of a text that may belong to a traceback, with the number of their first line."""
    if len(text) <= WHOLE:
        yield 1, text
        return
    spans: list[list[int]] = []
    for mark in _MARK.finditer(text):
        begin, end = max(0, mark.start() - BEFORE), mark.end() + AFTER
        if spans and begin <= spans[-1][1] + LONGEST_LINE:
            spans[-1][1] = end
        else:
            spans.append([begin, end])
    number, counted = 1, 0
    for begin, end in spans:
        begin = text.rfind("\n", 0, begin) + 1
        number += text.count("\n", counted, begin)
        counted = begin
        stop = text.find("\n", end)
        yield number, text[begin : stop if stop >= 0 else None]


def _cleaned(text: str, first: int = 1) -> Iterator[Line]:
    if "[0m" in text or "\x1b" in text:
        text = _ANSI.sub("", text)
        if "[0m" in text:
            text = _BARE_COLOUR.sub("", text)
    text = text.translate(_PLAIN)
    cut = ""  # a line that goes on in the next
    for number, line in enumerate(text.split("\n"), first):
        for part in line.rstrip("\r").split("\r"):
            part = part[:LONGEST_LINE]
            if "**" in part or "__" in part:
                part = _BOLD.sub(lambda mark: mark["margin"] or "", part)
            if "](" in part:
                part = _LINK.sub(r"\1", part)
            elif ":" in part and part[:1].isdigit() and TIME.fullmatch(part.strip()):
                continue  # a viewer of logs puts the stamp on a line of its own
            if cut and '", line ' in part:
                part = cut + part
            cut = ""
            if START in part and (escaped := _ESCAPED.search(part)):
                yield from (Line(number, unescaped) for unescaped in _unescaped(part, escaped))
            elif 'File "' in part and _CUT_IN_PATH.match(part):
                cut = part
            else:
                yield Line(number, part)


def _unescaped(line: str, found: re.Match[str]) -> list[str]:
    """Take a traceback out of a string literal in a log: JSON's or Python's."""
    quoted = line[found.start("start") :]
    if found["quote"]:
        ended = re.match(rf"(?:\\.|[^\\{found['quote']}])*", quoted)
        quoted = quoted if ended is None else ended[0]

    def character(escape: re.Match[str]) -> str:
        if escape["code"]:
            return chr(int(escape["code"], 16))
        return _LETTERS.get(escape["letter"], escape["letter"])

    return _ANSI.sub("", _ESCAPE.sub(character, quoted)).split("\n")


def _prefixes(lines: Sequence[Line]) -> list[str]:
    """Find the prefixes of a traceback's lines, the longest first; a zero byte stands for a time.

    A prefix counts if a traceback's first line and a frame near it both begin with it.
    """
    found: dict[str, None] = {}
    for index, (_, text) in enumerate(lines):
        match = _START_LINE.match(text) if START in text else None
        before = "" if match is None or len(match["before"]) > LONGEST_PREFIX else match["before"]
        prefix = TIME.sub("\0", before)
        if prefix.strip() and prefix not in found and _before_frame(prefix, lines[index + 1 : index + NEAR]):
            found[prefix] = None
    return sorted([*found][:MOST_PREFIXES], key=len, reverse=True)


def _pattern(prefix: str) -> str:
    times = f"(?:{'|'.join(_TIME)})"
    pattern = re.escape(prefix.rstrip()).replace("\0", times).replace(r"\x00", times)
    return f"{pattern}(?: |$)" if prefix != prefix.rstrip() else pattern


def _before_frame(prefix: str, following: Sequence[Line]) -> bool:
    pattern = re.compile(_pattern(prefix))
    ends = ((match.end(), text) for _, text in following if (match := pattern.match(text)))
    return any(_FRAME.match(text, end) for end, text in ends)


def _process(prefix: str) -> str | None:
    rank = _RANK.search(prefix)
    if rank is not None:
        return f"rank {next(filter(None, rank.groups()))}"
    name = prefix.replace("\0", "").strip(" |:[]()<>#-")
    return None if not name or "\0" in prefix or LEVEL.search(name) else name

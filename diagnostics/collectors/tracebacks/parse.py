"""Parses the text of tracebacks, however they were printed, logged or drawn."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from diagnostics.collectors.crash.frames import outside_dispatch
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.where import is_user_code, shorten

from . import tensorflow_format
from .clean import LEVEL, NEAR, START, TIME, Line, streams
from .formats import rewritten
from .unknown_errors import entries

CHAINED = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
NO_EXCEPTION = "the text ends before the line with the exception"
_FROM_WORKER = re.compile(  # torch._utils.ExceptionWrapper: of a data loader's worker, or of a replica; and Ray's
    rf"(?:Caught \w{{1,200}} in [^\n]{{1,400}}\.\nOriginal {re.escape(START)}:|^ray::[^\n]*)\n(?P<original>.*)",
    re.DOTALL,
)
_FRAME = re.compile(r'^(?:> )?\s*File "(?P<file>.+?)", line (?P<line>\d+)(?:, ?in ?(?P<function>.+))?\s*$')
_EXCEPTION = re.compile(
    r"^(?P<name>[A-Za-z_][\w.]*)(?:\.<locals>\.(?P<local>\w+))?(?:\(\w+\))?(?:: ?(?P<message>.*))?$"
)
_ENDINGS = (
    r"(?:Error|Exception|Interrupt|Exit|StopIteration|ArrowInvalid|TimeoutExpired|BadZipFile"
    r"|(?:Read|Connect)Timeout|NameNotFound|DeprecatedEnv|DependencyNotInstalled)"
)
_KNOWN = re.compile(rf"(?:{_ENDINGS}|Warning)$")
_SAID = rf"(?P<said>(?P<name>[A-Za-z_][\w.]*{_ENDINGS})(?::.*|$))"
_ALONE = re.compile(rf"^(?:(?:FAILED|ERROR) \S+::\S+ - |E {{3,}}|[ #>]+)?{_SAID}")  # or as pytest has it
_LOGGED = re.compile(rf"^.{{1,150}}?(?:[\]:|>)-] *|\dZ? ){_SAID}")
LAUNCHERS = ("ChildFailedError", "CalledProcessError", "SignalException", "ProcessExitedException")
WRAPPERS = ("DatasetGenerationError",)  # say no more than that the exception before them was raised
_ASIDE = ("Exception ignored in", "--- Logging error ---")
_ELSEWHERE = re.compile(  # a line that is not the message's any more
    rf"^(?:[=*_~]{{10,}}|-{{20,}}|={{3,}} .* ={{3,}}$|```|\"\"\"$"
    rf"|\[?(?:{TIME.pattern})\]?[ \[:,|-].*{LEVEL.pattern}|[DIWEF]\d{{4}} \d\d:|{LEVEL.pattern}:\S+:"
    r"|(?:\(\S+\) )?[\w.-]+@[\w.-]+[: ][^$#]*[$#] |\$ |PS [A-Z]:\\|.*\d%\|"
    r"|Exception ignored in|Exception in thread |--- Logging error ---|FAILED \S+::|-- Process \d+ terminated"
    r"|srun: error: )"
)


@dataclass(frozen=True)
class Failure:
    """Exceptions that came of each other, as one text tells of them.

    Attributes:
        chain: the exceptions in the order in which they were printed and raised.
        line: of the text, counted from 1, on which it begins.
        process: whose it is, if the text holds several processes' lines: ``rank 1``.
        aside: it ended no training: a launcher's report of a failure elsewhere, or an exception that was ignored.
    """

    chain: tuple[CrashFacts, ...]
    line: int
    process: str | None = None
    aside: bool = False

    @property
    def last(self) -> CrashFacts:
        """The exception that was printed last."""
        return self.chain[-1]


def failures(text: str) -> list[Failure]:
    """Find every exception in a text, those that came of each other together, in the order in which they begin.

    What stands around the tracebacks (logs, progress bars, prefixes, colours) is passed over. Where there is no
    traceback, a line that names an exception (``IndexError: Target 2 is out of bounds.``) counts as one without
    frames. An empty list: there is none.
    """
    told = streams(text)
    found = [failure for stream in told for failure in _in_stream(rewritten(stream.lines), stream.process)]
    return sorted(found or named_lines(text), key=lambda failure: failure.line)


def named_lines(text: str) -> list[Failure]:
    """Find the lines that name an exception, whether there is a traceback beside them or not."""
    return [failure for stream in streams(text) for failure in _last_lines(stream.lines, stream.process)]


def frames_in(text: str) -> tuple[FrameFacts, ...]:
    """Return the frames of a text that was cut off before the line that names the exception.

    None of a log that goes on after them: they were printed for another reason.
    """
    for stream in streams(text):
        lines = rewritten(stream.lines)
        texts = [line.text for line in lines]
        places = ((at, _FRAME.match(text)) for at, text in enumerate(texts))
        found = {at: _read_frame(frame, texts, at + 1) for at, frame in places if frame is not None}
        if found and len(lines) - max(found) <= NEAR:
            return outside_dispatch(found.values())
    return ()


def _in_stream(lines: list[Line], process: str | None) -> list[Failure]:
    starts = [index for index, line in enumerate(lines) if START in line.text and not _is_within(lines, index)]
    found: list[Failure] = []
    chained = quoted = False
    led_there: tuple[FrameFacts, ...] = ()  # frames of the main process, of a chain that a worker wrote
    for start, end in pairwise([-1, *starts, len(lines)]):
        crash = _parse_one(lines[start + 1 : end], headless=start < 0)
        before = [line.text for line in lines[max(0, start - 2) : max(0, start)]]
        if crash is not None:
            inherited = led_there if chained else ()
            led_there = crash.frames if _FROM_WORKER.search(crash.message) else inherited
            crash = unwrapped(replace(crash, frames=(*inherited, *crash.frames)))
            if chained and found and crash.exception in WRAPPERS:
                pass  # what it came of is there already
            elif chained and found:
                *others, cause = found[-1].chain
                # One that came from another process is taken with the frames that it had there.
                there = replace(crash, frames=(*crash.frames, *cause.frames))
                chain = (there,) if quoted else (cause, crash)
                found[-1] = replace(found[-1], chain=(*others, *chain))
            else:
                aside = _is_launchers(crash) or any(text.startswith(_ASIDE) for text in before)
                found.append(Failure((crash,), lines[max(0, start)].number, process, aside))
        chained = any(line.text.strip() in CHAINED for line in lines[max(0, start) : end])
        quoted = before[-1:] == ['"""']
    return found


def _is_launchers(crash: CrashFacts) -> bool:
    own = any(frame.yours for frame in crash.frames)
    return crash.exception in entries("reports") or (crash.exception in LAUNCHERS and not own)


def _is_within(lines: list[Line], index: int) -> bool:
    """Whether a traceback is part of the message of another."""
    before = lines[index - 1].text if index else ""
    return f"Original {START}" in lines[index].text or tensorflow_format.PASSED_ON in before


def unwrapped(crash: CrashFacts) -> CrashFacts:
    """Return the error within the message of another: of a data loader's worker, or of a graph of TensorFlow's."""
    wrapped = _FROM_WORKER.search(crash.message)
    if wrapped is not None:
        said = [part.split("\n") for part in wrapped["original"].split(f"\n{START}:\n")]
        parsed = (_parse_one([Line(0, line) for line in lines]) for lines in reversed(said))
        original = next((crash for crash in parsed if crash is not None), None)
        if original is not None:
            frames = (*crash.frames, *original.frames)
            return replace(crash, exception=original.exception, message=original.message, frames=frames)
    return tensorflow_format.unwrapped(crash)


def _parse_one(lines: Sequence[Line], headless: bool = False) -> CrashFacts | None:
    """Read one traceback, its first line left out.

    Args:
        lines: up to where the next one begins.
        headless: it is not known where it begins, nor whether there is one.
    """
    frames: list[FrameFacts] = []
    texts: list[str] | None = None
    right_after = False  # nothing but frames and their source since the last frame
    flat = -1  # the line after a frame whose indent was lost, which may be its source
    deep = 0  # the last frame's indent
    for index, (_, text) in enumerate(lines):
        frame = _FRAME.match(text) if "File " in text else None
        if texts is None and frame is not None:
            texts = _to_the_left([line.text for line in lines], len(text) - len(text.lstrip(" >")) - 2)
        if frame is not None:
            frames = frames if right_after or not headless else []
            frames.append(_read_frame(frame, texts or [], index + 1))
            right_after = True
            flat = index + 1 if text.startswith("File ") else -1
            deep = len(text) - len(text.lstrip(" "))
            continue
        line = text if texts is None else texts[index]
        indent = len(text) - len(text.lstrip(" "))
        outdented = line[:1] == " " and (indent < deep or line[1:2] != " ")
        if outdented and right_after and _ALONE.match(line.strip()):  # the indent was lost in part, or widened
            line = line.strip()
        if not line.strip() or line[0].isspace():
            continue
        exception = None if keyword.iskeyword(line) else _EXCEPTION.match(line)
        named = exception is not None and _is_exception(exception["name"])
        if index == flat and _may_be_source(line):
            flat = index + 1 if text.strip(" ~^") else -1  # Python marks a part of it in the line after
            continue
        if exception is not None and (right_after or (named and not headless)):
            rest = [line.text for line in lines[index + 1 :]] if texts is None else texts[index + 1 :]
            return _crash(exception, rest, frames)
        right_after = False
    return None


def _to_the_left(texts: list[str], margin: int) -> list[str]:
    """Remove the indent of a whole traceback."""
    if margin <= 0:
        return texts
    return [text[margin:] if not text[:margin].strip() else text for text in texts]


def _read_frame(found: re.Match[str], texts: Sequence[str], following: int) -> FrameFacts:
    """Read a frame, and the line of source below it."""
    file, function = found["file"], (found["function"] or "").strip() or "<module>"
    code = next(iter(texts[following : following + 1]), "")
    flat = texts[following - 1].startswith("File ") and _may_be_source(code)
    if _FRAME.match(code) or code.startswith("  [Previous line ") or not (code.startswith("  ") or flat):
        code = ""
    return FrameFacts(shorten(file), int(found["line"]), function, code.strip() or None, is_user_code(file))


def _may_be_source(line: str) -> bool:
    """Whether a line without indent can be a frame's source, and is not the exception."""
    exception = _EXCEPTION.match(line)
    if exception is None or keyword.iskeyword(line):
        return True
    return not _is_exception(exception["name"]) and (exception["message"] is None or "." not in exception["name"])


def _is_exception(name: str) -> bool:
    last = name.rpartition(".")[2]
    if last in ("Error", "Exception", "Warning") and "." not in name:
        return False  # a word in a log, more often than a class
    return last[:1].isupper() and _KNOWN.search(last) is not None


def _rest_of_message(lines: Sequence[str], name: str) -> list[str]:
    rest: list[str] = []
    for line in lines:
        if line.strip() in CHAINED or (name not in LAUNCHERS and _ELSEWHERE.match(line)):
            break
        rest.append(line)
    return rest


def _last_lines(lines: Sequence[Line], process: str | None) -> list[Failure]:
    """Find the lines that name an exception, without any traceback; behind a prefix only if none stands alone."""
    for pattern in (_ALONE, _LOGGED):
        at = [
            (index, match["said"])
            for index, (_, text) in enumerate(lines)
            if (match := pattern.match(text)) and _is_exception(match["name"])
            if pattern is _ALONE or _is_stamp(text[: match.start("said")])
        ]
        if at:
            break
    found: list[Failure] = []
    for (index, said), (end, _) in pairwise([*at, (len(lines), "")]):
        exception = _EXCEPTION.match(said)
        if exception is not None:
            before = lines[index - 1].text.strip() if index else ""
            crash = _crash(exception, [text for _, text in lines[index + 1 : end]])
            if crash.exception == "AssertionError" and not crash.message and before.startswith("assert"):
                crash = replace(crash, message=before)  # its source, pasted without the place
            found.append(Failure((unwrapped(crash),), lines[index].number, process))
    return found


def _is_stamp(prefix: str) -> bool:
    """Whether a logger or a launcher writes this before an error."""
    if level := LEVEL.search(prefix):
        return level[0].upper() in ("ERROR", "CRITICAL", "FATAL")
    return bool(TIME.search(prefix) or re.match(r"[\[(]|\d+: ?$|\S+ +\| ", prefix))


def _crash(exception: re.Match[str], rest: Sequence[str], frames: Sequence[FrameFacts] = ()) -> CrashFacts:
    name = exception["local"] or exception["name"].rpartition(".")[2]
    again = [index for index, line in enumerate(rest) if line == exception[0]]  # another process's, mixed in
    more = _rest_of_message(rest[: again[0] if again else None], name)
    if exception["message"] is None and not "".join(more[:1]).strip():
        more = []  # Python prints no message without a colon
    message = "\n".join(_unmarked(line) for line in (exception["message"] or "", *more))
    return CrashFacts(name, message.strip(), outside_dispatch(frames), live=False)


def _unmarked(line: str) -> str:
    """Remove the mark at a line's end with which a page closes what it shows as code."""
    return line.rstrip()[:-1] if line.rstrip().endswith("`") and line.count("`") % 2 else line

"""Reads an exception, live or as text: the facts of the crash, and what is recognised in it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from diagnostics.collectors.tracebacks import no_traceback
from diagnostics.collectors.tracebacks.clean import with_underscores
from diagnostics.collectors.tracebacks.parse import (
    LAUNCHERS,
    NO_EXCEPTION,
    WRAPPERS,
    Failure,
    failures,
    frames_in,
    named_lines,
    unwrapped,
)
from diagnostics.collectors.tracebacks.python_errors import is_python_error
from diagnostics.collectors.tracebacks.tensorflow_format import IN_USER_CODE
from diagnostics.collectors.tracebacks.unknown_errors import entries
from diagnostics.errors import InvalidInput
from diagnostics.facts.crash import CrashFacts, LauncherTail, without_long_words
from diagnostics.text.join import count_of

from .by_frames import refused_call
from .classify import symptoms
from .frames import Crash, is_ours, read_exception, within
from .processes import launcher_tail

_Explained = tuple[str, CrashFacts, *tuple[Any, ...]]
"""Title, crash, and what is recognised in it."""
LONGEST = 24_000  # characters of a text in whose lines an error is looked for
_QUOTED = "explained a message without a traceback"
_WARNING = "explained a warning"
_WITHOUT_END = "explained a traceback without its last line"
_FORWARD = "Traceback of forward call that caused the error"  # a warning's of anomaly mode: it ended nothing


def facts_of_exception(error: BaseException) -> tuple[CrashFacts, *tuple[Any, ...]]:
    """Read a live exception; if it is not recognised, its causes and the exceptions in its group."""
    if type(error).__name__ in WRAPPERS and error.__cause__ is not None:
        error = error.__cause__
    crash = whole = _read(error)
    if is_ours(error):
        return (crash.facts,)
    link: BaseException | None = error
    seen: set[int] = set()
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        if link is not error:
            whole = within(whole, _read(link))
        if found := symptoms(whole):
            return whole.facts, *found
        if isinstance(link, BaseExceptionGroup):
            for part in link.exceptions:
                facts, *found = facts_of_exception(part)
                if found:
                    return replace(facts, frames=(*whole.facts.frames, *facts.frames)), *found
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return crash.facts, *refused_call(crash.facts)


def _read(error: BaseException) -> Crash:
    crash = read_exception(error)
    facts = unwrapped(crash.facts)
    frames_elsewhere = len(facts.frames) - len(crash.facts.frames)
    if frames_elsewhere:  # another process's: the expression here only passed it on
        return Crash(replace(facts, failed=None), (*crash.variables, *({} for _ in range(frames_elsewhere))))
    return replace(crash, facts=facts)


def read_text(text: str) -> _Explained:
    """Read the text of a traceback; of several, the most likely origin that is recognised.

    Chained exceptions count as one failure, as in `facts_of_exception`.

    Returns:
        The title of the report, the facts of the crash, and what was recognised in it.

    Raises:
        InvalidInput: the text has no traceback.
    """
    text = with_underscores(without_long_words(text))
    found_failures = failures(text)
    if not found_failures:
        ended = no_traceback.last_words(text)
        if ended is None:
            if quoted := _quoted(text) or _named(text) or _cut_off(text) or _warned(text):
                return quoted
            raise InvalidInput(_nothing_in(text))
        found_failures = [Failure((ended,), 1)]
    ordered = _in_order(found_failures, text)
    tail: _Explained | None = None  # says no more than that something failed
    for position, failure in enumerate(ordered):
        last, *before = reversed(failure.chain)
        whole = Crash(last, log=text)
        for facts in (None, *before):
            if facts is not None:
                whole = within(whole, Crash(facts))
            if found := symptoms(whole):
                explained: _Explained = (_title(found_failures, failure), whole.facts, *found)
                if isinstance(found[0], LauncherTail):
                    own = is_python_error(failure.last) if not position else _is_origin(ordered[0], found[0])
                    if not own:
                        tail = tail or explained
                elif position and _may_be_caught(ordered[0], failure):
                    return _title(found_failures, ordered[0]), ordered[0].last
                else:
                    return explained
    if tail is not None:
        return _named_beside(text) or tail
    if ordered[0].aside:
        reported = next((found for found in _in_lines(text) if found[1].exception not in LAUNCHERS), None)
        if reported is not None:
            return reported
    if (
        not any(crash.frames for failure in ordered for crash in failure.chain)
        and (quoted := _quoted(text))
        and not (isinstance(quoted[2], LauncherTail) and is_python_error(ordered[0].last))
    ):
        return quoted
    if ordered[0].last.message.startswith(IN_USER_CODE) and (beside := _named_beside(text)) is not None:
        return beside
    return _title(found_failures, ordered[0]), ordered[0].last, *refused_call(ordered[0].last)


def _is_origin(failure: Failure, tail: LauncherTail) -> bool:
    """Whether a traceback is of the process that a launcher reports, and not the launcher's own."""
    of_it = failure.process is None or failure.process == f"rank {tail.rank}"
    says = bool(failure.last.frames) or is_python_error(failure.last)
    return of_it and not failure.aside and says and (tail.exit_code or 0) >= 0


def _in_lines(text: str) -> Iterator[_Explained]:
    """Yield the errors that lines name beside a report that does not name them, and what aborted the process.

    The report is a launcher's, or a traceback of Keras that was cut where the user's code begins.
    """
    named = [failure.last for failure in named_lines(text)] if len(text) <= LONGEST else []
    for error in (*named, *no_traceback.endings(text)):
        yield _QUOTED, error, *symptoms(Crash(error, log=text))


def _named_beside(text: str) -> _Explained | None:
    """Find the first of them that a rule knows."""
    known = (found for found in _in_lines(text) if found[2:] and not isinstance(found[2], LauncherTail))
    return next(known, None)


def _quoted(text: str) -> _Explained | None:
    """Recognise a message that is quoted without its traceback; None if no rule knows it."""
    for cut in (False, True):
        for message in no_traceback.quoted_messages(text):
            if found := symptoms(Crash(message, log=text), cut):
                # Only the line that was recognised, without its surroundings.
                for line in no_traceback.lines_of(message):
                    if repr(symptoms(Crash(line, log=text), cut)) == repr(found):  # arrays do not compare as one
                        return _QUOTED, line, *found
                return _QUOTED, message, *found
    return None


def _warned(text: str) -> _Explained | None:
    """Recognise a warning, or a line that means nothing, where a text holds nothing else."""
    for warning in no_traceback.endings(text, "warnings"):
        if found := symptoms(Crash(warning, log=text), cut=False):
            return _WARNING, warning, *found
    line = no_traceback.harmless(text)
    return None if line is None else (_WARNING, line)


def _named(text: str) -> _Explained | None:
    """Take an error that a text names in a sentence, and of which no rule knows more."""
    error = no_traceback.named_error(no_traceback.without_harmless(text))
    return None if error is None else (_QUOTED, error)


def _cut_off(text: str) -> _Explained | None:
    """Take a traceback without its exception by its frames: they show which call failed."""
    frames = frames_in(text)
    crash = CrashFacts("", NO_EXCEPTION, frames, live=False)
    if found := symptoms(Crash(crash, log=text), cut=False):
        return _WITHOUT_END, crash, *found
    return (_WITHOUT_END, crash) if frames and _FORWARD not in text else None


def _nothing_in(text: str) -> str:
    wanted = (
        "It takes a whole traceback, from 'Traceback (most recent call last):' to the line with the exception."
    )
    if not text.strip():
        return f"explain() was given an empty text. {wanted}"
    lines = count_of(len(text.splitlines()), "line")
    return f"No rule knows this text. explain() was given {lines} without a traceback. {wanted}"


def _in_order(found: Sequence[Failure], text: str) -> list[Failure]:
    """Return the failures, the likeliest origin first.

    One process goes on after a failure that it caught: the last one ended it. Of several processes the first to
    fail took the others down, and what a launcher says of it comes after everything.

    Args:
        found: of one text, in the order in which they were printed.
        text: all of it; the summary of a launcher is looked for in it.
    """
    own = [failure for failure in found if not failure.aside]
    reports = [failure for failure in reversed(found) if failure.aside]
    processes = dict.fromkeys(failure.process for failure in own if failure.process is not None)
    root, code = _root(text)
    if root in processes:
        of_root = [failure for failure in reversed(own) if failure.process == root]
        return [*of_root, *(failure for failure in own if failure.process != root), *reports]
    if root is not None and code < 0:  # killed, so that it could say nothing itself
        return [*reports, *own]
    if len(processes) > 1:
        endings = [next(f for f in reversed(own) if f.process == process) for process in processes]
        endings.sort(key=lambda failure: failure.line)
        return [*endings, *(failure for failure in reversed(own) if failure not in endings), *reports]
    return [*(own if root is not None else reversed(own)), *reports]


def _may_be_caught(last: Failure, earlier: Failure) -> bool:
    """Whether a process went on after a failure, so that it may have nothing to do with the last one."""
    return (
        last.process == earlier.process
        and last.line > earlier.line
        and not last.aside
        and not earlier.aside
        and last.last.exception not in entries("aftermath")
        and bool(last.last.frames or earlier.last.frames)  # two that are only quoted may be of two runs
    )


def _root(text: str) -> tuple[str | None, int]:
    """Read which rank failed first, and its exit code, negative for a signal."""
    summed_up = "Root Cause (first observed failure)" in text
    crash = CrashFacts("ChildFailedError" if summed_up else "", text, (), live=False)
    tail = launcher_tail(Crash(crash)) if summed_up or "srun: error: " in text else None
    return (None, 0) if tail is None or tail.rank is None else (f"rank {tail.rank}", tail.exit_code or 0)


def _title(found: Sequence[Failure], taken: Failure) -> str:
    """Say what was explained: which failure, and of how many."""
    own = [failure for failure in found if not failure.aside]
    if taken not in own:
        own = list(found)
    if len(own) == 1:
        return "explained the text of a traceback"
    which = f"of {taken.process}" if taken.process is not None else f"on line {taken.line}"
    return f"explained the failure {which}, one of {len(own)} in the text"

"""Reads an exception, live or as text: the facts of the crash, and what is recognised in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from diagnostics.collectors.tracebacks import no_traceback
from diagnostics.collectors.tracebacks.clean import with_underscores
from diagnostics.collectors.tracebacks.nature import error_category
from diagnostics.collectors.tracebacks.parse import (
    LAUNCHERS,
    NO_EXCEPTION,
    WRAPPERS,
    Failure,
    failures,
    frames_in,
    unwrapped,
)
from diagnostics.collectors.tracebacks.python_errors import is_python_error
from diagnostics.collectors.tracebacks.rank import in_order, may_be_caught, title
from diagnostics.collectors.tracebacks.tensorflow_format import IN_USER_CODE
from diagnostics.errors import InvalidInput
from diagnostics.facts.crash import CrashFacts, Symptom, without_long_words
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.processes import LauncherTail
from diagnostics.text.join import count_of

from .classify import symptoms
from .frames import Crash, is_ours, read_exception, within
from .refused_calls import refused_call

_Explained = tuple[str, CrashFacts, *tuple[Any, ...]]
"""Title, crash, and what is recognised in it."""
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
    return crash.facts, *_refused(crash.facts)


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
    ordered = in_order(found_failures, text)
    tail: _Explained | None = None  # says no more than that something failed
    for position, failure in enumerate(ordered):
        last, *before = reversed(failure.chain)
        whole = Crash(last, log=text)
        for facts in (None, *before):
            if facts is not None:
                whole = within(whole, Crash(facts))
            if found := symptoms(whole):
                explained: _Explained = (title(found_failures, failure), whole.facts, *found)
                if isinstance(found[0], LauncherTail):
                    own = is_python_error(failure.last) if not position else _is_origin(ordered[0], found[0])
                    if not own:
                        tail = tail or explained
                elif position and may_be_caught(ordered[0], failure):
                    return title(found_failures, ordered[0]), _beside(ordered[0].last, failure)
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
    return title(found_failures, ordered[0]), ordered[0].last, *_refused(ordered[0].last)


def _refused(crash: CrashFacts) -> tuple[KnownFailure, ...]:
    """Recognise a library's own check by the frames, where nothing knows its words."""
    known = refused_call(crash)
    return () if known is None else (known,)


def _is_origin(failure: Failure, tail: LauncherTail) -> bool:
    """Whether a traceback is of the process that a launcher reports, and not the launcher's own."""
    of_it = failure.process is None or failure.process == f"rank {tail.rank}"
    says = bool(failure.last.frames) or is_python_error(failure.last)
    return of_it and not failure.aside and says and (tail.exit_code or 0) >= 0


def _in_lines(text: str) -> Iterator[_Explained]:
    """Yield the errors in titles: single lines outside a report that does not name them.

    That is a launcher's, or a traceback of Keras that was cut where the user's code begins. The last is what
    aborted a process of which a launcher reports only that.
    """
    aborted = no_traceback.given_up(text)
    for error in (*no_traceback.error_lines(text), *([] if aborted is None else [aborted])):
        yield _QUOTED, error, *_symptoms(error, text)


def _named_beside(text: str) -> _Explained | None:
    """Find the first of them that a rule knows."""
    known = (found for found in _in_lines(text) if found[2:] and not isinstance(found[2], LauncherTail))
    return next(known, None)


def _quoted(text: str) -> _Explained | None:
    """Recognise a message that is quoted without its traceback; None if no rule knows it."""
    for cut in (False, True):
        for message in no_traceback.quoted_messages(text):
            if found := _symptoms(message, text, cut):
                # Only the line that was recognised, without its surroundings.
                for line in no_traceback.lines_of(message):
                    if repr(_symptoms(line, text, cut)) == repr(found):  # arrays do not compare as one
                        return _QUOTED, line, *found
                return _QUOTED, message, *found
    return None


def _warned(text: str) -> _Explained | None:
    """Recognise a warning, or a line that means nothing, where a text holds nothing else."""
    for warning in no_traceback.warned(text):
        if found := _symptoms(warning, text, cut=False):
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
    if found := _symptoms(crash, text, cut=False):
        return _WITHOUT_END, crash, *found
    return (_WITHOUT_END, crash) if frames and _FORWARD not in text else None


def _beside(fatal: CrashFacts, caught: Failure) -> CrashFacts:
    """Mention an earlier failure that a rule knows: the program went on after it, so it may not be the cause."""
    kind = error_category(fatal)
    earlier = (
        f"An earlier failure, on line {caught.line} of the text ({caught.last.exception}), is one that a rule "
        "knows, but the program went on after it: if it led to this one, pass that traceback alone."
    )
    return replace(fatal, nature=earlier if kind is None else f"{kind} {earlier}")


def _symptoms(crash: CrashFacts, text: str, cut: bool = True) -> list[Symptom]:
    """Return what is recognised in an error that a line of a text names."""
    return symptoms(Crash(crash, log=text), cut)


def _nothing_in(text: str) -> str:
    wanted = (
        "It takes a whole traceback, from 'Traceback (most recent call last):' to the line with the exception."
    )
    if not text.strip():
        return f"explain() was given an empty text. {wanted}"
    lines = count_of(len(text.splitlines()), "line")
    return f"No rule knows this text. explain() was given {lines} without a traceback. {wanted}"

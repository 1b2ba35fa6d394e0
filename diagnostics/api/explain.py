"""`explain`: finds the cause of an exception, live or as text."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

from diagnostics.engine.finding import Finding
from diagnostics.errors import InvalidInput, what
from diagnostics.facts.crash import CrashFacts, Symptom, without_long_words
from diagnostics.facts.crash.known import KnownFailure
from diagnostics.facts.crash.processes import LauncherTail
from diagnostics.report.report import Report
from diagnostics.text.join import count_of

if TYPE_CHECKING:
    from diagnostics.collectors.crash.frames import Crash
    from diagnostics.collectors.tracebacks.parse import Failure

    _Explained = tuple[str, CrashFacts, *tuple[Any, ...]]
    """Title, crash, and what is recognised in it."""


_QUOTED = "explained a message without a traceback"
_WARNING = "explained a warning"
_WITHOUT_END = "explained a traceback without its last line"
_FORWARD = "Traceback of forward call that caused the error"  # a warning's of anomaly mode: it ended nothing
_SETTING = re.compile(r"\b(?:[A-Z][A-Z0-9_]{5,40}=[\w.:-]{1,40}|[a-z_]{5,40}=(?:True|False|None|\d{1,9})\b)")
_ADVICE = re.compile(
    r"consider|\btry|passing|please|hint|should|need to|suggest|by (?:setting|adding)|you can", re.IGNORECASE
)
"""Lines that only recommend a setting: they are the library's own words."""


def explain(failure: Any) -> Report:
    """Report the cause of a failure, where it is, the evidence, and what to change.

    From a live exception the tensors in the frames of its traceback are read: labels, number of outputs, lengths.
    From a text only the text is known, and the report says what it does not show.

    The text may be a whole log. Tracebacks are read as Python, IPython, Jupyter, Colab, pytest, rich and loguru
    print them, behind the prefixes of loggers and launchers, with or without colours. Of several failures in one
    process the last is explained, since the earlier ones were caught; of several processes the first failure. The
    title says which.

        try:
            trainer.train()
        except Exception as error:
            print(diagnostics.explain(error))

    Args:
        failure: a caught exception, or a text with a traceback or at least the error's message.

    Returns:
        A `Report`; without findings if no rule recognises the failure.

    Raises:
        InvalidInput: neither an exception nor a text with a traceback, part of one, or a known message.
    """
    from diagnostics.report.build import finished
    from diagnostics.rules.registry import rules_of_crashes

    return finished(explanation_of(failure), rules_of_crashes())


def explanation_of(failure: Any) -> Report:
    """Do the same as `explain`, without grouping the findings."""
    if isinstance(failure, str):
        title, crash, *symptoms = read_text(failure)
    elif isinstance(failure, BaseException):
        title = "explained an exception"
        crash, *symptoms = facts_of_exception(failure)
    else:
        raise InvalidInput(
            f"explain() was given {what(failure)}. It takes a caught exception, or the text of a traceback."
        )
    from diagnostics.report.build import evaluated, evaluator_of_crashes

    if isinstance(failure, BaseException) and (fault := fault_of_ours(failure)) is not None:
        return Report(title, crash=crash, faults=(fault,))
    evaluator = evaluator_of_crashes()
    findings = [*evaluator.add(crash, *symptoms), *evaluator.close_phase()]
    if isinstance(failure, str):
        findings = [_done_last(finding, failure) for finding in findings]
    if not findings and crash.nature is None:
        from diagnostics.collectors.tracebacks.nature import error_category

        crash = replace(crash, nature=error_category(crash))
    return evaluated(title, evaluator, findings, (CrashFacts, *get_args(Symptom)), of_crash=True, crash=crash)


def _done_last(finding: Finding, text: str) -> Finding:
    """Return the finding with the fixes last whose setting occurs in the text, outside of advice."""
    fixes = (finding.fix, *finding.alternatives)
    lines = [line for line in text.splitlines() if not _ADVICE.search(line)]
    ordered = sorted(fixes, key=lambda fix: any(setting in line for setting in _settings(fix) for line in lines))
    return replace(finding, fix=ordered[0], alternatives=tuple(ordered[1:]))


def _settings(fix: str) -> Iterator[str]:
    return (found[0] for found in _SETTING.finditer(fix))


def fault_of_ours(error: BaseException) -> str | None:
    """Return the traceback of an exception that this library raised; None of any other."""
    from diagnostics.collectors.crash.frames import is_ours

    return "".join(traceback.format_exception(error)).strip() if is_ours(error) else None


def facts_of_exception(error: BaseException) -> tuple[CrashFacts, *tuple[Any, ...]]:
    """Read a live exception; if it is not recognised, its causes and the exceptions in its group."""
    from diagnostics.collectors.crash.classify import symptoms
    from diagnostics.collectors.crash.frames import is_ours, within
    from diagnostics.collectors.tracebacks.parse import WRAPPERS

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
    from diagnostics.collectors.crash.frames import Crash, read_exception
    from diagnostics.collectors.tracebacks.parse import unwrapped

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
    from diagnostics.collectors.crash.classify import symptoms
    from diagnostics.collectors.crash.frames import Crash, within
    from diagnostics.collectors.tracebacks.clean import with_underscores
    from diagnostics.collectors.tracebacks.no_traceback import last_words
    from diagnostics.collectors.tracebacks.parse import Failure, failures
    from diagnostics.collectors.tracebacks.python_errors import is_python_error
    from diagnostics.collectors.tracebacks.rank import in_order, may_be_caught, title
    from diagnostics.collectors.tracebacks.tensorflow_format import IN_USER_CODE

    text = with_underscores(without_long_words(text))
    found_failures = failures(text)
    if not found_failures:
        ended = last_words(text)
        if ended is None:
            if quoted := _quoted(text) or _retyped(text) or _named(text) or _cut_off(text) or _warned(text):
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
                elif position and may_be_caught(ordered[0], failure, text):
                    return title(found_failures, ordered[0]), _beside(ordered[0].last, failure)
                else:
                    return explained
    if tail is not None:
        return _named_beside(text) or _gave_up(text) or tail
    if ordered[0].aside and (reported := _reported(text)) is not None:
        return reported
    if (
        not any(crash.frames for failure in ordered for crash in failure.chain)
        and (quoted := _quoted(text) or _retyped(text))
        and not (isinstance(quoted[2], LauncherTail) and is_python_error(ordered[0].last))
    ):
        return quoted
    if ordered[0].last.message.startswith(IN_USER_CODE) and (beside := _named_beside(text)) is not None:
        return beside
    return title(found_failures, ordered[0]), ordered[0].last, *_refused(ordered[0].last)


def _refused(crash: CrashFacts) -> tuple[KnownFailure, ...]:
    """Recognise a library's own check by the frames, where nothing knows its words."""
    from diagnostics.collectors.crash.refused_calls import refused_call

    known = refused_call(crash)
    return () if known is None else (known,)


def _is_origin(failure: Failure, tail: LauncherTail) -> bool:
    """Whether a traceback is of the process that a launcher reports, and not the launcher's own."""
    from diagnostics.collectors.tracebacks.python_errors import is_python_error

    of_it = failure.process is None or failure.process == f"rank {tail.rank}"
    says = bool(failure.last.frames) or is_python_error(failure.last)
    return of_it and not failure.aside and says and (tail.exit_code or 0) >= 0


def _named_beside(text: str) -> _Explained | None:
    """Find an error that a rule knows in a line of its own, a title, beside a report that does not name it.

    That is a launcher's, or a traceback of Keras that was cut where the user's code begins.
    """
    from diagnostics.collectors.tracebacks.no_traceback import error_lines

    for error in error_lines(text):
        found = _symptoms(error, text)
        if found and not isinstance(found[0], LauncherTail):
            return _QUOTED, error, *found
    return None


def _gave_up(text: str) -> _Explained | None:
    """Recognise what aborted a process of which a launcher reports only that it was aborted."""
    from diagnostics.collectors.tracebacks.no_traceback import given_up

    ended = given_up(text)
    found = [] if ended is None else _symptoms(ended, text)
    return None if ended is None or not found else (_QUOTED, ended, *found)


def _reported(text: str) -> _Explained | None:
    """Take the error of a line of its own beside a launcher's traceback, which says only that a process failed."""
    from diagnostics.collectors.tracebacks.no_traceback import error_lines
    from diagnostics.collectors.tracebacks.parse import LAUNCHERS

    for error in error_lines(text):
        if error.exception not in LAUNCHERS:
            return _QUOTED, error, *_symptoms(error, text)
    return None


def _quoted(text: str) -> _Explained | None:
    """Recognise a message that is quoted without its traceback; None if no rule knows it."""
    from diagnostics.collectors.tracebacks.no_traceback import lines_of, quoted_messages

    for cut in (False, True):
        for message in quoted_messages(text):
            if found := _symptoms(message, text, cut):
                for line in lines_of(message):  # the one that gave it away, without what stands around it
                    if repr(_symptoms(line, text, cut)) == repr(found):  # arrays do not compare as one
                        return _QUOTED, line, *found
                return _QUOTED, message, *found
    return None


def _retyped(text: str) -> _Explained | None:
    """Recognise a message that is not written as the program printed it: marks of a page in it, other capitals."""
    from diagnostics.collectors.crash.frames import Crash
    from diagnostics.collectors.crash.messages.known import MOST_RETYPED, in_any_case
    from diagnostics.collectors.tracebacks.no_traceback import lines_of, quoted_messages, without_marks

    plain = without_marks(text)
    if plain != text and (quoted := _quoted(plain)):
        return quoted
    if len(plain) > MOST_RETYPED:
        return None
    for message in quoted_messages(plain):
        for line in lines_of(message):
            if (known := in_any_case(Crash(line, log=text))) is not None:
                return _QUOTED, line, known
    return None


def _warned(text: str) -> _Explained | None:
    """Recognise a warning, or a line that means nothing, where a text holds nothing else."""
    from diagnostics.collectors.tracebacks.no_traceback import harmless, warned

    for warning in warned(text):
        if found := _symptoms(warning, text, cut=False):
            return _WARNING, warning, *found
    line = harmless(text)
    return None if line is None else (_WARNING, line)


def _named(text: str) -> _Explained | None:
    """Take an error that a text names in a sentence, or whose words it shows otherwise.

    Of these no rule knows more, but for the words in a line that raises.
    """
    from diagnostics.collectors.tracebacks.nature import error_category
    from diagnostics.collectors.tracebacks.no_traceback import (
        asserted,
        named_error,
        raised_in_source,
        unnamed_error,
        without_harmless,
    )
    from diagnostics.collectors.tracebacks.parse import cut_in_notebook, frames_in

    text = without_harmless(text)
    if (error := named_error(text)) is not None:
        cut = cut_in_notebook(text)  # a title beside a notebook's frames, of which the last line was not copied
        if cut is not None and cut.exception == error.exception:
            error = replace(error, frames=cut.frames)
            return _QUOTED, error, *_symptoms(error, text)
        return _QUOTED, error
    if (error := raised_in_source(text)) is not None:
        error = replace(error, frames=frames_in(text))
        return _QUOTED, error, *_symptoms(error, text)
    if (error := asserted(text)) is not None:
        return _QUOTED, error
    error = unnamed_error(text)
    return None if error is None or error_category(error) is None else (_QUOTED, error)


def _cut_off(text: str) -> _Explained | None:
    """Take a traceback without its exception by its frames: they show which call failed.

    A notebook's heading names the exception at least.
    """
    from diagnostics.collectors.crash.processes import is_spawned, spawned
    from diagnostics.collectors.tracebacks.parse import NO_EXCEPTION, cut_in_notebook, frames_in

    frames = frames_in(text)
    crash = CrashFacts("", NO_EXCEPTION, frames, live=False)
    if is_spawned(frames):
        return _WITHOUT_END, crash, spawned(NO_EXCEPTION)
    cut = cut_in_notebook(text)
    if cut is not None and cut.frames:
        return _WITHOUT_END, cut
    return (_WITHOUT_END, crash) if frames and _FORWARD not in text else None


def _beside(fatal: CrashFacts, caught: Failure) -> CrashFacts:
    """Mention an earlier failure that a rule knows: the program went on after it, so it may not be the cause."""
    from diagnostics.collectors.tracebacks.nature import error_category

    kind = error_category(fatal)
    earlier = (
        f"An earlier failure, on line {caught.line} of the text ({caught.last.exception}), is one that a rule "
        "knows, but the program went on after it: if it led to this one, pass that traceback alone."
    )
    return replace(fatal, nature=earlier if kind is None else f"{kind} {earlier}")


def _symptoms(crash: CrashFacts, text: str, cut: bool = True) -> list[Symptom]:
    """Return what is recognised in an error that a line of a text names."""
    from diagnostics.collectors.crash.classify import symptoms
    from diagnostics.collectors.crash.frames import Crash

    return symptoms(Crash(crash, log=text), cut)


def _nothing_in(text: str) -> str:
    wanted = (
        "It takes a whole traceback, from 'Traceback (most recent call last):' to the line with the exception."
    )
    if not text.strip():
        return f"explain() was given an empty text. {wanted}"
    lines = count_of(len(text.splitlines()), "line")
    return f"No rule knows this text. explain() was given {lines} without a traceback. {wanted}"

"""`explain`: finds the cause of an exception, from the exception itself or from text."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, get_args

from diagnostics.engine.finding import Finding
from diagnostics.errors import InvalidInput, what
from diagnostics.facts.crash import CrashFacts, Symptom
from diagnostics.report.report import Report

_SETTING = re.compile(r"\b(?:[A-Z][A-Z0-9_]{5,40}=[\w.:-]{1,40}|[a-z_]{5,40}=(?:True|False|None|\d{1,9})\b)")
_ADVICE = re.compile(
    r"consider|\btry|passing|please|hint|should|need to|suggest|by (?:setting|adding)|you can", re.IGNORECASE
)
"""Lines that only recommend a setting: they are the library's own words."""


def explain(failure: Any) -> Report:
    """Report the cause of a failure, where it is, the evidence, and what to change.

    Given an exception, reads the tensors in the frames of its traceback: labels, number of outputs, lengths. A
    text contains less, and the report says what is missing.

    The text may be a whole log. Tracebacks are recognised as Python, IPython, Jupyter, Colab, rich and loguru
    print them, with or without the prefixes of loggers and launchers, and with or without colours. If one process
    failed several times, the last failure is explained, because the earlier ones were caught; if several processes
    failed, the first failure is explained. The title says which.

        try:
            trainer.train()
        except Exception as error:
            print(diagnostics.explain(error))

    Args:
        failure: a caught exception, or text with a traceback or at least the error's message.

    Returns:
        A `Report`; without findings if no rule recognises the failure.

    Raises:
        InvalidInput: neither an exception nor text with a traceback, part of a traceback, or a known message.
    """
    from diagnostics.report.build import finished
    from diagnostics.rules.registry import rules_of_crashes

    return finished(explanation_of(failure), rules_of_crashes())


def explanation_of(failure: Any) -> Report:
    """Do the same as `explain`, but without grouping the findings."""
    from diagnostics.collectors.crash.read import facts_of_exception, read_text

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
    """Return the traceback of an exception that this library raised; None for any other exception."""
    from diagnostics.collectors.crash.frames import is_ours

    return "".join(traceback.format_exception(error)).strip() if is_ours(error) else None

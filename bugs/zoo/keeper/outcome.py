"""Judges how a script ended against what its exhibit declares."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from bugs.zoo.keeper.child import Ending
from bugs.zoo.keeper.last_words import frame_in, last_exception, metrics, short_path
from bugs.zoo.keeper.manifest import Condition, ExceptionSignature, Exhibit, MetricSignature

if TYPE_CHECKING:
    from diagnostics.facts.crash import CrashFacts, FrameFacts

Verdict = Literal[
    "reproduced",  # the declared failure, from the broken script
    "recovered",  # the solution meets its recovery
    "repaired",  # so does the broken script: the reader mended it
    "another failure",
    "no failure",  # ran to its end, but shows neither the failure nor the recovery
    "missing dependency",
    "too slow",
    "too big",
    "interrupted",
]
# The import names of what `pip install -e .[zoo]` brings.
DEPENDENCIES = {
    *("accelerate", "bugs", "datasets", "filelock", "keras", "keras_hub", "numpy", "peft", "platformdirs"),
    *("psutil", "rich", "sklearn", "tensorflow", "torch", "transformers"),
}


@dataclass(frozen=True)
class Outcome:
    """What came of one run. `ok` is what the exit code tells."""

    exhibit: Exhibit
    script: Path
    verdict: Verdict
    reason: str  # one line
    ending: Ending
    exception: CrashFacts | None
    metrics: dict[str, float]

    @property
    def ok(self) -> bool:
        """Whether the broken script showed its declared failure, or the solution its recovery."""
        return self.verdict == ("recovered" if self.script == self.exhibit.solution else "reproduced")

    @property
    def surfaced(self) -> FrameFacts | None:
        """The innermost frame of the exception."""
        return self.exception.frames[-1] if self.exception and self.exception.frames else None

    @property
    def called_from(self) -> FrameFacts | None:
        """The innermost frame in the script itself."""
        return frame_in(self.script, self.exception) if self.exception else None

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome as plain values; paths from the zoo's root, seconds, MiB. Metrics may be NaN."""
        exhibit, root = self.exhibit, self.exhibit.root
        return {
            "version": 1,
            "exhibit": exhibit.id,
            "title": exhibit.title,
            "script": short_path(self.script, root),
            "verdict": self.verdict,
            "reason": self.reason,
            "ok": self.ok,
            "exit_code": self.ending.returncode,
            "seconds": round(self.ending.seconds, 2),
            "budget_s": exhibit.budget_s,
            "peak_mb": round(self.ending.peak_mb),
            "budget_mb": exhibit.budget_mb,
            "exception": None
            if self.exception is None
            else {
                "type": self.exception.exception,
                "message": self.exception.message,
                "surfaced": _frame_to_dict(self.surfaced, root),
                "called_from": _frame_to_dict(self.called_from, root),
            },
            "metrics": self.metrics,
        }


def judge(exhibit: Exhibit, script: Path, ending: Ending) -> Outcome:
    """Say what came of running `script`, the exhibit's broken script or its solution."""
    exception = last_exception(ending.stderr) if ending.returncode else None
    printed = metrics(ending.stdout)
    verdict, reason = _verdict(exhibit, script, ending, exception, printed)
    return Outcome(exhibit, script, verdict, reason, ending, exception, printed)


def _verdict(
    exhibit: Exhibit,
    script: Path,
    ending: Ending,
    exception: CrashFacts | None,
    printed: dict[str, float],
) -> tuple[Verdict, str]:
    if ending.how == "stopped":
        return "interrupted", "stopped before its end"
    if ending.how == "too slow":
        return "too slow", f"ended after {ending.seconds:.1f} s; its budget is {exhibit.budget_s:g} s"
    if ending.how == "too big":
        used, allowed = ending.peak_mb, exhibit.budget_mb
        return "too big", f"ended when it held {used:.0f} MiB of memory; its budget is {allowed} MiB"

    broken = script == exhibit.script
    signature, recovery = exhibit.signature, exhibit.recovery
    if exception is not None:
        differences = (
            _differences(signature, exception)
            if isinstance(signature, ExceptionSignature)
            else [f"the declared failure throws nothing: {signature}"]
        )
        if broken and not differences:
            return "reproduced", _headline(exception)
        if module := _missing_dependency(exception):
            return (
                "missing dependency",
                f"this Python lacks {module!r}; run `nox -s env` once, then try again",
            )
        return "another failure", "; ".join(differences) if broken else _headline(exception)
    if ending.returncode:
        return "another failure", f"{_exit(ending.returncode)}, and no exception was printed"

    if broken and isinstance(signature, MetricSignature) and _holds(signature, printed):
        return "reproduced", f"{exhibit.headline}; {_show(signature, printed)} ({signature.words} is the failure)"
    shown = _show(recovery, printed)
    if _holds(recovery, printed):
        return "repaired" if broken else "recovered", f"{shown} ({recovery.words} is a recovery)"
    reason = f"ran to its end with {shown}; {recovery.metric} {recovery.words} would be a recovery"
    if broken and isinstance(signature, MetricSignature):
        reason += f", {signature.metric} {signature.words} the failure"
    return "no failure", reason


def matches(signature: ExceptionSignature | MetricSignature, exception: CrashFacts) -> bool:
    """Whether `exception` is the one that `signature` declares."""
    return isinstance(signature, ExceptionSignature) and not _differences(signature, exception)


def fails_like(signature: ExceptionSignature | MetricSignature, exception: CrashFacts) -> bool:
    """Whether `exception` is the declared one, wherever it surfaces: a learner's script is another file."""
    return (
        isinstance(signature, ExceptionSignature)
        and signature.exception == exception.exception
        and re.search(signature.message, exception.message) is not None
    )


def lookalikes(outcome: Outcome, exhibits: Iterable[Exhibit]) -> list[Exhibit]:
    """Return the other exhibits whose declared failure this outcome is."""
    if outcome.verdict != "another failure" or outcome.exception is None:
        return []
    exception = outcome.exception
    return [other for other in exhibits if other.id != outcome.exhibit.id and matches(other.signature, exception)]


def _differences(signature: ExceptionSignature, exception: CrashFacts) -> list[str]:
    differences = []
    if signature.exception != exception.exception:
        differences.append(f"expected {signature.exception}, got {exception.exception}")
    if not re.search(signature.message, exception.message):
        differences.append(f"expected a message with {signature.message!r}")
    if not (exception.frames and _surfaces(signature, exception.frames[-1])):
        differences.append(f"expected it to surface at {signature.surfaces}")
    return differences


def _surfaces(signature: ExceptionSignature, frame: FrameFacts) -> bool:
    path = "/" + frame.file.replace("\\", "/").lstrip("/")
    # "*.py in *" is for memory, which runs out wherever the last straw falls.
    return fnmatchcase(path, "*/" + signature.surface_path) and fnmatchcase(
        frame.function, signature.surface_function
    )


def _missing_dependency(exception: CrashFacts) -> str | None:
    if exception.exception != "ModuleNotFoundError":
        return None
    module = exception.message.partition("'")[2].partition("'")[0].partition(".")[0]
    return module if module in DEPENDENCIES else None


def _holds(wanted: Condition, printed: dict[str, float]) -> bool:
    return wanted.metric in printed and wanted.holds(printed[wanted.metric])


def _show(wanted: Condition, printed: dict[str, float]) -> str:
    if wanted.metric not in printed:
        return f"no line {wanted.metric}=…"
    return f"{wanted.metric}={printed[wanted.metric]:g}"


def _headline(exception: CrashFacts) -> str:
    first = exception.message.partition("\n")[0]
    return f"{exception.exception}: {first}" if first else exception.exception


def _exit(returncode: int) -> str:
    if returncode > 0:
        return f"ended with exit code {returncode}"
    name = signal.Signals(-returncode).name if -returncode in set(signal.Signals) else f"signal {-returncode}"
    return f"killed by {name}" + (", perhaps for want of memory" if name == "SIGKILL" else "")


def _frame_to_dict(frame: FrameFacts | None, root: Path) -> dict[str, Any] | None:
    if frame is None:
        return None
    return {
        "file": short_path(frame.file, root),
        "line": frame.line,
        "function": frame.function,
        "code": frame.code,
    }

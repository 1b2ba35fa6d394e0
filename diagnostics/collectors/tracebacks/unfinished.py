"""Says what a traceback shows whose last line was not copied: the call that failed, and what usually fails there.

The line that is missing names the exception and the reason. The frames alone prove which call it was; at
most three causes are usual at a call, and each is named with what its message would say.
"""

from __future__ import annotations

from typing import Any

from diagnostics.facts.crash import CrashFacts, FrameFacts

from .unknown_errors import entries, search

NO_EXCEPTION = "the text ends before the line with the exception"
NO_MESSAGE = "the text ends before its message"
MOST_READ = 400  # characters of a frame


def _shows(call: dict[str, Any], frame: FrameFacts) -> bool:
    """Return whether a frame, written as ``torch/serialization.py:load: with open(f)``, is of a call."""
    file = frame.file.replace("\\", "/")
    return search(call, f"{file}:{frame.function}: {(frame.code or '').strip()}"[:MOST_READ]) is not None


def is_unfinished(crash: CrashFacts) -> bool:
    """Whether a traceback was read whose message is missing."""
    return crash.message in (NO_EXCEPTION, NO_MESSAGE)


def shown_by(crash: CrashFacts) -> str:
    """Say which call the last frames show, what usually fails there, and that the reason itself is missing."""
    name = crash.exception.rpartition(".")[2]
    missing = f"The message of the {name} is missing" if name else "The line with the exception is missing"
    last = crash.frames[-1] if crash.frames else None
    if last is None:
        return f"{missing}: it says why. Copy the text to its end."
    known = ((frame, call) for frame in reversed(crash.frames) for call in entries("calls") if _shows(call, frame))
    frame, call = next(known, (last, None))
    ends = "" if frame is last else f" The text ends in {last.function} ({last.file}:{last.line})."
    if call is None:
        return (
            f"{missing}: it says why. The last frame shown is {last.function} ({last.file}:{last.line}), which "
            "alone tells no cause. Copy the text to its end."
        )
    causes = call["causes"]
    several = len(causes) > 1
    usual = "; ".join(f"({number}) {cause}" if several else cause for number, cause in enumerate(causes, 1))
    return (
        f"{missing}, so that the cause is not certain. In {frame.function} ({frame.file}:{frame.line}) "
        f"{call['does']}."
        f"{ends} Usual there: {usual}. The line that is missing tells: copy the text to its end."
    )

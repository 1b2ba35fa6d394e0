"""Recognises examples that no batch can be made of, and further failures of arrays and devices."""

from __future__ import annotations

import re

from diagnostics.collectors.crash.cuda import assertion
from diagnostics.collectors.crash.frames import Crash, Recogniser
from diagnostics.collectors.crash.messages.table import Family, Found, sizes
from diagnostics.facts.crash import AsynchronousErrorCrash, Symptom
from diagnostics.facts.crash.data import LabelBeyondOutputs, TokenBeyondEmbedding
from diagnostics.facts.crash.loss import NotProbabilities
from diagnostics.facts.crash.processes import LauncherTail
from diagnostics.facts.crash.setup import PositionsDiffer, StateOfOtherBatch, UnbatchableExample
from diagnostics.facts.crash.shapes import OperandsMisfit, ReshapeMisfit

_ARRAY = Family("numpy-reshape")
_ARRAYS = Family("numpy-element-wise")


@Family("collation").reader
def _unbatchable(crash: Crash, found: Found) -> UnbatchableExample | None:
    rows = (int(found["expected"]), int(found["got"])) if found.kind == "rows" else None
    return UnbatchableExample(found.kind, found["what"], rows)


@Family("hidden-state").reader
def _state(crash: Crash, found: Found) -> StateOfOtherBatch | None:
    return StateOfOtherBatch(sizes(found["wanted"]), sizes(found["got"]))


_SIZES = re.compile(r"size of tensor a \((?P<length>\d+)\) must match the size of tensor b \((?P<rows>\d+)\)")
_ADDS_POSITIONS = re.compile(r"\+=?\s*(?:self\.)?\w*\bpos(?:ition(?:al)?)?_?(?:emb|enc)\w*|\+=?\s*self\.pe\b")


def _positions(crash: Crash) -> PositionsDiffer | None:
    """Recognise a table of positions by the line that adds it: the input is its first operand."""
    found = _SIZES.search(crash.facts.message)
    last = crash.facts.frames[-1] if crash.facts.frames else None
    if found is None or last is None or _ADDS_POSITIONS.search(last.code or "") is None:
        return None
    return PositionsDiffer(int(found["length"]), int(found["rows"]))


def _shapes(crash: Crash) -> ReshapeMisfit | OperandsMisfit | None:
    message = crash.facts.message
    if found := _ARRAY.search(message):
        wanted = sizes(found["wanted"].replace("newaxis", "-1"))
        if len(wanted) == 1 and message[found.match.end() :].startswith(")"):
            wanted = (-1, *wanted)  # NumPy leaves an open axis out where it stands first: (6,) is one of six
        return ReshapeMisfit(wanted, int(found["size"]), library="numpy")
    if found := _ARRAYS.search(message):
        shapes = sizes(found["one"]), sizes(found["other"])
        for back in range(1, min(map(len, shapes)) + 1):
            one, other = shapes[0][-back], shapes[1][-back]
            if one != other and 1 not in (one, other):
                return OperandsMisfit(
                    "element-wise", one, other, max(map(len, shapes)) - back, shapes, library="numpy"
                )
    return None


_ASSERTED = re.compile(r"thread: \[[\d,]+\] Assertion `?(?P<check>[^`\n]{3,120}?)`? failed")
_OUTSIDE_UNIT = re.compile(r"input_val >= zero && inp")


def _assertion_alone(crash: Crash) -> Symptom | None:
    """Recognise what a kernel printed, where the exception that follows is missing or another."""
    of_device = "device-side assert" in crash.facts.message
    found = _ASSERTED.search(f"{crash.facts.message}\n{crash.log}" if of_device else crash.facts.message)
    if found is None:
        return None
    check = found["check"]
    if _OUTSIDE_UNIT.search(check):
        return NotProbabilities()
    if of_device and assertion(crash.log)[1] is not None:
        return None  # the device's own recogniser reads it
    if re.search(r"n_classes|cur_target", check):
        return LabelBeyondOutputs()
    if re.search(r"srcIndex < srcSelectDimSize|vectorized gather kernel index out of bounds", check):
        return TokenBeyondEmbedding()
    if of_device:
        return None
    return AsynchronousErrorCrash(
        kind="assert", said="device-side assert triggered", assertion=" ".join(check.split())
    )


@Family("cudnn-start").reader
def _library(crash: Crash, found: Found) -> AsynchronousErrorCrash | None:
    return AsynchronousErrorCrash(kind="library", said=found.text)


_COMMAND = re.compile(r"Command (?P<words>.*) returned non-zero exit status (?P<code>\d+)", re.DOTALL)


def _launched(crash: Crash) -> LauncherTail | None:
    """Recognise a launcher's report without the launcher's frames, or with its last line cut off."""
    facts = crash.facts
    found = _COMMAND.match(facts.message.strip()) if facts.exception == "CalledProcessError" else None
    own = any(frame.yours for frame in facts.frames)
    if found is not None and "python" in found["words"] and ".py" in found["words"] and not own:
        return LauncherTail("the launcher", None, int(found["code"]))
    last = facts.frames[-1] if facts.frames else None
    cut_off = facts.exception in ("", "errors") and last is not None
    if cut_off and last is not None and "ChildFailedError" in (last.code or ""):
        return LauncherTail("torchrun")
    return None


RECOGNISERS: tuple[Recogniser, ...] = (
    _unbatchable,
    _state,
    _positions,
    _library,
    _launched,
)

FROM_DEVICE: tuple[Recogniser, ...] = (_assertion_alone,)

LAST: tuple[Recogniser, ...] = (_shapes,)

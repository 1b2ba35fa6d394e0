"""Recognises examples that no batch can be made of, and further wordings of dtypes, shapes and devices."""

from __future__ import annotations

import re
from collections.abc import Callable

from diagnostics.collectors.crash.cuda import assertion
from diagnostics.collectors.crash.frames import Crash
from diagnostics.facts.crash import (
    AsynchronousErrorCrash,
    LabelBeyondOutputs,
    NotProbabilities,
    ShapesDiffer,
    Symptom,
    TokenBeyondEmbedding,
)
from diagnostics.facts.crash.processes import InstallationCrash, LauncherTail, WorkerCrash
from diagnostics.facts.crash.setup import PositionsDiffer, StateOfOtherBatch, UnbatchableExample
from diagnostics.facts.crash.shapes import AxesMisfit, OperandsMisfit, ReshapeMisfit
from diagnostics.facts.crash.usage import DtypesDiffer

_COLLATED = re.compile(r"batch must contain tensors,[^;\n]*; found <class '(?P<what>[\w.]+)'>")
_ROWS = re.compile(r"Column \d+ named (?P<what>\S+) expected length (?P<expected>\d+) but got length (?P<got>\d+)")


def _unbatchable(crash: Crash) -> UnbatchableExample | None:
    message = crash.facts.message
    if found := _COLLATED.search(message):
        return UnbatchableExample("type", found["what"])
    if found := _ROWS.search(message):
        return UnbatchableExample("rows", found["what"], (int(found["expected"]), int(found["got"])))
    return None


_STATE = re.compile(r"Expected hidden(?:\[[01]\])? size \((?P<wanted>[\d, ]+)\), got [(\[](?P<got>[\d, ]+)[)\]]")


def _state(crash: Crash) -> StateOfOtherBatch | None:
    found = _STATE.search(crash.facts.message)
    return None if found is None else StateOfOtherBatch(_shape(found["wanted"]), _shape(found["got"]))


_SIZES = re.compile(r"size of tensor a \((?P<length>\d+)\) must match the size of tensor b \((?P<rows>\d+)\)")
_ADDS_POSITIONS = re.compile(r"\+=?\s*(?:self\.)?\w*\bpos(?:ition(?:al)?)?_?(?:emb|enc)\w*|\+=?\s*self\.pe\b")


def _positions(crash: Crash) -> PositionsDiffer | None:
    """Recognise a table of positions by the line that adds it: the input is its first operand."""
    found = _SIZES.search(crash.facts.message)
    last = crash.facts.frames[-1] if crash.facts.frames else None
    if found is None or last is None or _ADDS_POSITIONS.search(last.code or "") is None:
        return None
    return PositionsDiffer(int(found["length"]), int(found["rows"]))


def _shape(written: str) -> tuple[int, ...]:
    return tuple(int(size) for size in re.findall(r"\d+", written))


_BACKWARD_DTYPES = re.compile(r"expected dtype (?P<wanted>\w+) but got dtype (?P<got>\w+)")  # 1.5, 1.6
_NO_FLOAT64 = re.compile(r"the MPS framework doesn't support float64")
_NAMES = {
    "Float": "float32",
    "Double": "float64",
    "Half": "float16",
    "Long": "int64",
    "Int": "int32",
    "Bool": "bool",
}


def _dtypes(crash: Crash) -> DtypesDiffer | None:
    if _NO_FLOAT64.search(crash.facts.message):
        return DtypesDiffer("no float64", "float64", "float32")
    if found := _BACKWARD_DTYPES.search(crash.facts.message):
        got, wanted = (_NAMES.get(found[part], found[part].lower()) for part in ("got", "wanted"))
        kind = "target" if got.startswith(("int", "bool")) else "operands"
        return DtypesDiffer(kind, got, wanted)  # type: ignore[arg-type]
    return None


_CONVOLUTION = re.compile(
    r"Expected (?P<few>\d)-dimensional input for \d-dimensional weight\b.{0,60}?but got \d-dimensional input of "
    r"size "
    r"\[(?P<shape>[\d, ]*)\]"
)
_ARRAY = re.compile(r"cannot reshape array of size (?P<size>\d+) into shape \(?(?P<wanted>-?\d[-\d, ]*)\)?")
_JOINED = re.compile(  # 1.8, 1.9
    r"Sizes of tensors must match except in dimension (?P<axis>\d+)\. Got (?P<one>\d+) and (?P<other>\d+) "
    r"\(The offending"
)
_ARRAYS = re.compile(
    r"operands could not be broadcast together with shapes \((?P<one>[\d, ]*)\) \((?P<other>[\d, ]*)\)"
)


def _shapes(crash: Crash) -> AxesMisfit | ReshapeMisfit | OperandsMisfit | None:
    message = crash.facts.message
    if found := _CONVOLUTION.search(message):
        shape = _shape(found["shape"])
        return AxesMisfit(found["few"], len(shape), f"Conv{int(found['few']) - 2}d", shape=shape)
    if found := _JOINED.search(message):
        one, other = int(found["one"]), int(found["other"])
        return OperandsMisfit("concatenation", one, other, int(found["axis"]))
    if found := _ARRAY.search(message):
        wanted = tuple(int(size) for size in re.findall(r"-?\d+", found["wanted"]))
        return ReshapeMisfit(wanted, int(found["size"]), library="numpy")
    if found := _ARRAYS.search(message):
        shapes = _shape(found["one"]), _shape(found["other"])
        for back in range(1, min(map(len, shapes)) + 1):
            one, other = shapes[0][-back], shapes[1][-back]
            if one != other and 1 not in (one, other):
                return OperandsMisfit(
                    "element-wise", one, other, max(map(len, shapes)) - back, shapes, library="numpy"
                )
    return None


_TARGET = re.compile(  # Keras 2
    r"A target array with shape \((?P<target>[\d, L]+)\) was passed for an output of shape \((?P<output>[^)]+)\)"
    r"|checking (?:model )?target: expected \S+ to have (?P<axes>\d) dimensions,? but got array with shape "
    r"\((?P<array>[\d, L]+)\)"
)


def _targets(crash: Crash) -> ShapesDiffer | None:
    found = _TARGET.search(crash.facts.message)
    if found is None:
        return None
    if found["axes"]:
        return ShapesDiffer((None,) * int(found["axes"]), _shape(found["array"]))
    output = (int(size) if size.strip().isdigit() else None for size in found["output"].split(",") if size.strip())
    return ShapesDiffer(tuple(output), _shape(found["target"]))


_ASSERTED = re.compile(r"thread: \[[\d,]+\] Assertion `?(?P<check>[^`\n]{3,120}?)`? failed")
_OUTSIDE_UNIT = re.compile(r"input_val >= zero && input_val <= one")


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


_CUDNN = re.compile(
    r"Failed to get convolution algorithm\. This is probably because cuDNN failed to initialize|No algorithm "
    r"worked!"
)
_LINKED = re.compile(r"undefined symbol: \w+|Symbol not found: \w+")
_TRITON = re.compile(r"Cannot find a working triton installation")


def _library(crash: Crash) -> AsynchronousErrorCrash | InstallationCrash | None:
    if found := _CUDNN.search(crash.facts.message):
        return AsynchronousErrorCrash(kind="library", said=found[0].split(".")[0])
    if found := _TRITON.search(crash.facts.message):
        return InstallationCrash("no triton", found[0])
    if found := _LINKED.search(crash.facts.message):
        return InstallationCrash("binary", found[0])
    return None


def _spawned(crash: Crash) -> WorkerCrash | None:
    """Recognise the parent of a child that ended while it was being started, as spawning does it."""
    facts = crash.facts
    files = [frame.file.replace("\\", "/") for frame in facts.frames]
    spawns = any(file.endswith(("multiprocessing/reduction.py", "popen_spawn_win32.py")) for file in files)
    if facts.exception == "BrokenPipeError" and spawns:
        return WorkerCrash("spawned")
    return None


_COMMAND = re.compile(r"Command .*python.*\.py'?.* returned non-zero exit status (?P<code>\d+)", re.DOTALL)


def _launched(crash: Crash) -> LauncherTail | None:
    """Recognise a launcher's report without the launcher's frames, or with its last line cut off."""
    facts = crash.facts
    found = _COMMAND.search(facts.message) if facts.exception == "CalledProcessError" else None
    own = any(frame.yours for frame in facts.frames)
    if found is not None and not own:
        return LauncherTail("the launcher", None, int(found["code"]))
    last = facts.frames[-1] if facts.frames else None
    cut_off = facts.exception in ("", "errors") and last is not None
    if cut_off and last is not None and "ChildFailedError" in (last.code or ""):
        return LauncherTail("torchrun")
    return None


RECOGNISERS: tuple[Callable[[Crash], Symptom | None], ...] = (
    _unbatchable,
    _state,
    _positions,
    _dtypes,
    _library,
    _spawned,
    _launched,
    _targets,
)

FROM_DEVICE: tuple[Callable[[Crash], Symptom | None], ...] = (_assertion_alone,)

LAST: tuple[Callable[[Crash], Symptom | None], ...] = (_shapes,)

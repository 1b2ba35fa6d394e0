"""Recognises messages about dtypes, graphs, checkpoints, settings, and data that no batch can be made of."""

from __future__ import annotations

import re

from diagnostics.collectors.tracebacks.unknown_errors import entries
from diagnostics.facts.crash.shapes import PositionsDiffer
from diagnostics.facts.crash.usage import CheckpointKeysDiffer, DtypesDiffer

from .frames import Crash, Recogniser
from .messages.table import Family, Found
from .pytorch import ELEMENT_WISE, tensors_of


@Family("dtypes").reader
def _dtypes_differ(crash: Crash, found: Found) -> DtypesDiffer | None:
    if _on_two_devices(found):
        return None
    got, wanted = _dtype(found.get("got")), _dtype(found.get("wanted"))
    if found.kind in ("classes", "indices"):
        wanted = "int64"
    if found.kind == "result":
        return DtypesDiffer("target" if _within_loss(crash) else "result", got, wanted, None, _tensors(crash))
    named = _tensors(crash) if found.kind != "integers" else {}
    library = "tensorflow" if found.message.framework in ("TensorFlow", "Keras") else "torch"
    return DtypesDiffer(found.kind, got, wanted, found.get("operation"), named, library)


def _within_loss(crash: Crash) -> bool:
    """Whether one of PyTorch's losses was called: an operation in place fails in the same words."""
    return any(
        "loss" in frame.function.lower() or "binary_cross_entropy" in frame.function
        for frame in crash.facts.frames
    )


def _dtype(name: str | None) -> str | None:
    """Write a dtype as Python does, from C++'s name or an old tensor class: `torch.DoubleTensor` is float64."""
    if name is None:
        return None
    plain = name.rpartition(".")[2].rpartition(":")[2].removesuffix("Tensor").lower()
    return str(entries("dtypes").get(plain, plain))


def _on_two_devices(found: Found) -> bool:
    """Whether the message names tensor classes of which one is of CUDA: then the devices differ."""
    names = [name for part in ("got", "wanted") if (name := found.get(part))]
    return len({"cuda" in name for name in names}) == 2 and all("Tensor" in name for name in names)


def _tensors(crash: Crash) -> dict[str, str]:
    """Return dtypes by name, from the innermost frame that holds tensors of different dtypes."""
    own = {} if crash.expression is None else crash.expression.tensors()
    for held in (own, *(tensors_of(variables) for variables in crash.inward())):
        named = {name: str(value.dtype).removeprefix("torch.") for name, value in held.items()}
        if len(set(named.values())) > 1:
            return named
    return {}


_LISTED_KEYS = r"{} key\(s\) in state_dict:((?:\s*\"[^\"]+\",?)+)"


@Family("checkpoints").reader
def _checkpoint_keys_differ(crash: Crash, found: Found) -> CheckpointKeysDiffer | None:
    message = crash.facts.message
    model = re.search(r"Error\(s\) in loading state_dict for (\w+)", message)
    lists = [re.search(_LISTED_KEYS.format(kind), message) for kind in ("Missing", "Unexpected")]
    missing, unexpected = (tuple(re.findall(r'"([^"]+)"', keys[1])) if keys else () for keys in lists)
    if not missing and not unexpected:
        return None
    return CheckpointKeysDiffer("" if model is None else model[1], missing, unexpected)


_ADDS_POSITIONS = re.compile(r"\+=?\s*(?:self\.)?\w*\bpos(?:ition(?:al)?)?_?(?:emb|enc)\w*|\+=?\s*self\.pe\b")


@ELEMENT_WISE.reader
def _positions(crash: Crash, found: Found) -> PositionsDiffer | None:
    """Recognise a table of positions by the line that adds it: the input is its first operand."""
    if found.kind != "operands" or not _ADDS_POSITIONS.search(crash.facts.frames[-1].code or ""):
        return None
    return PositionsDiffer(int(found["one"]), int(found["other"]))


RECOGNISERS: tuple[Recogniser, ...] = (
    _dtypes_differ,
    _checkpoint_keys_differ,
    _positions,
)

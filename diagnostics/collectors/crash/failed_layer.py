"""Finds the torch.nn layer that raised, and its path in the model."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from diagnostics.collectors.shared.arrays import is_tensor
from diagnostics.facts.crash.shapes import Shape

from .frames import Crash

_MODULES = "torch/nn/modules/"
_WRAPPERS = ("_orig_mod",)  # what torch.compile puts between


@dataclass(frozen=True)
class FailedLayer:
    """A layer of torch.nn that was running when it failed.

    Attributes:
        name: its class.
        path: where it is, as far as known.
        module: None if only the text is known.
        shape: of its input; None if not known.
        is_known: whether there is one.
    """

    name: str | None = None
    path: str | None = None
    module: Any = None
    shape: Shape | None = None
    is_known: bool = True


def _is_module(value: Any) -> bool:
    return hasattr(value, "_modules") and hasattr(value, "_parameters") and hasattr(value, "named_modules")


def failed_layer(crash: Crash, *kinds: tuple[str, str]) -> FailedLayer:
    """Return the innermost layer of one of the kinds, if no code of the user's ran within it.

    Args:
        crash: a failure of a model.
        kinds: a file of `torch.nn.modules` and a base class each, asked in order.
    """
    layers = (_of_kind(crash, file, base) for file, base in kinds)
    return next((layer for layer in layers if layer is not None), FailedLayer(is_known=False))


def _of_kind(crash: Crash, file: str, base: str) -> FailedLayer | None:
    frames, variables = crash.facts.frames, crash.variables
    for position in reversed(range(len(variables))):
        module = variables[position].get("self")
        if not _is_module(module):
            continue
        bases = {kind.__name__ for kind in type(module).__mro__ if kind.__module__.startswith("torch.nn.")}
        if base not in bases:
            return None
        given = variables[position].get("input", variables[position].get("x"))
        shape = tuple(given.shape) if is_tensor(given) else None
        return FailedLayer(type(module).__name__, _path(crash, position), module, shape)
    last = next((frame for frame in reversed(frames) if "functional.py" not in frame.file), None)
    if variables or last is None or not last.file.replace("\\", "/").endswith(f"{_MODULES}{file}"):
        return None
    return FailedLayer(None, _path_in_code(crash, file))


def _path(crash: Crash, position: int) -> str | None:
    """Name a module by its path: the variable that holds the model, then `a.b[0]`."""
    chain: list[Any] = []
    first = 0
    for number, variables in enumerate(crash.variables[: position + 1]):
        module = variables.get("self")
        if _is_module(module) and not any(module is known for known in chain):
            first = first if chain else number
            chain.append(module)
    variable = _variable(crash, first, chain[0])
    if variable is None and len(chain) == 1:
        return None
    path = variable or type(chain[0]).__name__
    for parent, child in pairwise(chain):
        name = next((name for name, module in parent.named_modules() if module is child), None)
        path = type(child).__name__ if name is None else path + _access(name)
    return path


def _access(name: str) -> str:
    """Write a name of `named_modules` as Python does: `net.0` becomes `.net[0]`."""
    parts = [part for part in name.split(".") if part not in _WRAPPERS]
    return "".join(f"[{part}]" if part.isdigit() else f".{part}" for part in parts)


def _variable(crash: Crash, before: int, module: Any) -> str | None:
    """Return the user's own name for a model, from the innermost of the frames that called it."""
    frames = list(zip(crash.facts.frames, crash.variables, strict=False))[:before]
    for frame, variables in reversed(frames):
        if not frame.yours:
            continue
        for name, value in variables.items():
            if value is module:
                return str(name)
        for name, value in getattr(variables.get("self"), "__dict__", {}).items():
            if value is module:
                return f"self.{name}"
    return None


def _path_in_code(crash: Crash, file: str) -> str | None:
    """Read from a text which layer the user's line called, if it called one, and that one failed."""
    frames = crash.facts.frames
    own = next((number for number, frame in reversed(list(enumerate(frames))) if frame.yours), None)
    within = ("module.py", file, "functional.py")
    if own is None or not all(frame.file.endswith(within) for frame in frames[own + 1 :]):
        return None
    calls = re.findall(r"\bself\.[\w.]{1,200}(?=\()", frames[own].code or "")
    return calls[0] if len(calls) == 1 else None

"""Finds operations of a script's own whose backward leaves out the gradient that it is given."""

from __future__ import annotations

import dis
import inspect
import math
from collections.abc import Iterable
from types import CodeType
from typing import Any

from torch.autograd.function import BackwardCFunction

from diagnostics.facts.loss import IgnoredGradient

STOPS = {"zeros", "zeros_like", "new_zeros"}  # the gradient is stopped on purpose
READS_ALL = {"locals", "vars", "eval", "exec"}
READS = ("LOAD_FAST", "LOAD_DEREF", "LOAD_CLOSURE", "DELETE_FAST")


def ignored_gradient(nodes: Iterable[Any]) -> IgnoredGradient | None:
    """Return an operation whose output is more than one number, and whose backward reads no gradient of it.

    Its code is read, never run: a script's backward may print, count, or draw random numbers.
    """
    for node in nodes:
        if not isinstance(node, BackwardCFunction):
            continue
        shape = tuple(int(size) for size in node._input_metadata[0].shape) if node._input_metadata else ()
        function = getattr(node, "_forward_cls", None)
        if math.prod(shape) < 2 or function is None:
            continue
        code = getattr(inspect.unwrap(function.backward), "__code__", None)
        if code is not None and (given := _unread(code)):
            return IgnoredGradient(function.__name__, given, shape)
    return None


def _unread(code: CodeType) -> tuple[str, ...]:
    """Return the names of a backward's gradients if it reads none of them, but what its forward saved."""
    several = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
    context, *given = code.co_varnames[:several] or ("",)
    names = {*code.co_names, *code.co_freevars}
    if not given or set(given) & set(code.co_cellvars) or names & (STOPS | READS_ALL):
        return ()
    found: set[str] = set()
    for instruction in dis.get_instructions(code):
        if any(read in instruction.opname for read in READS):  # Python 3.13 has STORE_FAST_LOAD_FAST, too
            value = instruction.argval
            found.update(value if isinstance(value, tuple) else (value,))
    return tuple(given) if context in found and not found & set(given) else ()

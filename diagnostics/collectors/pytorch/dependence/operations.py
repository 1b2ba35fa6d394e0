"""Records the operations of a forward pass that may combine the examples of a batch, and its attention."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from diagnostics.collectors.isolation.installed import is_installed_module
from diagnostics.collectors.shared.dependence.subject import Operation, rows_of_numbers
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import Mixer
from diagnostics.facts.where import Where

MOST_TRACED = 2**21  # scalars of a tensor whose rows are followed through a reshape: 16 MB of numbers
SOFTMAXES = (
    *(torch.softmax, torch.log_softmax, Tensor.softmax, Tensor.log_softmax),
    *(F.softmax, F.log_softmax),
)
RESHAPES = (torch.reshape, Tensor.reshape, Tensor.view, Tensor.view_as, Tensor.reshape_as)
EXTRA = 1  # positions that a model may add, as for a class token


class Recorder(TorchFunctionMode):  # type: ignore[misc]  # mypy does not follow torch
    """Records softmaxes, reshapes, and calls of recurrent and attention layers.

    Args:
        size: number of examples; an axis of this size counts them if it is the only one.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.seen: list[Operation] = []
        self._size = size
        # Tensors whose rows a reshape has merged with others, each with the examples of its numbers.
        self._merged: dict[int, tuple[Tensor, Array]] = {}

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Record a call, and make it."""
        options = kwargs or {}
        result = function(*args, **options)
        given: Any = args[0] if args else options.get("input")
        if type(given) is not Tensor or type(result) is not Tensor:
            return result
        if function in SOFTMAXES:
            axis = _softmax_axis(given, args, options)
            self.seen.append(Operation("softmax", "softmax", tuple(given.shape), axis, where=_line()))
        if function in RESHAPES:
            self._reshaped(given, result)
        elif id(given) in self._merged:
            self._carry(given, result)
        return result

    def _reshaped(self, given: Tensor, result: Tensor) -> None:
        rows = self._rows_of(given)
        shape, made = tuple(given.shape), tuple(result.shape)
        if rows is None or shape == made:
            return
        self.seen.append(Operation("reshape", "view", shape, -1, made, rows, _line()))
        if self._size not in made:
            self._merged[id(result)] = result, rows.reshape(made)

    def _rows_of(self, tensor: Tensor) -> Array | None:
        """Return the example of each number of a tensor; None if not known."""
        if id(tensor) in self._merged:
            return self._merged[id(tensor)][1]
        return None if tensor.numel() > MOST_TRACED else rows_of_numbers(tuple(tensor.shape), self._size)

    def _carry(self, given: Tensor, result: Tensor) -> None:
        """Follow merged rows through an operation on the last axis, or on each number."""
        rows = self._merged[id(given)][1]
        if result.shape == given.shape:
            self._merged[id(result)] = result, rows
        elif result.shape[:-1] == given.shape[:-1] and bool((rows == rows[..., :1]).all()):
            self._merged[id(result)] = result, np.broadcast_to(rows[..., :1], tuple(result.shape))


@contextlib.contextmanager
def operations_seen(model: nn.Module, size: int) -> Iterator[list[Operation]]:
    """Record the operations within; `size`: number of examples. The list is complete on leaving."""
    recorder, handles = Recorder(size), []
    for name, module in model.named_modules():
        kind: Mixer | None = (
            "recurrent"
            if isinstance(module, nn.RNNBase)
            else "attention"
            if isinstance(module, nn.MultiheadAttention)
            else None
        )
        if kind is not None:
            hook = partial(_layer_called, recorder.seen, kind, name)
            handles.append(module.register_forward_pre_hook(hook, with_kwargs=True))
    try:
        with recorder:
            yield recorder.seen
    finally:
        for handle in handles:
            handle.remove()


def _layer_called(
    seen: list[Operation], kind: Mixer, name: str, module: Any, args: tuple[Any, ...], options: dict[str, Any]
) -> None:
    given = args[0] if args else options.get("input", options.get("query"))
    if isinstance(given, Tensor) and given.ndim == 3:
        called = f"{name} ({type(module).__name__})" if name else type(module).__name__
        seen.append(Operation(kind, called, tuple(given.shape), 1 if module.batch_first else 0, where=_line()))


def _softmax_axis(given: Tensor, args: tuple[Any, ...], options: dict[str, Any]) -> int:
    axis = options.get("dim", args[1] if len(args) > 1 else None)
    if not isinstance(axis, int):  # what PyTorch takes if none is given
        return 0 if given.ndim in (0, 1, 3) else 1
    return axis % max(int(given.ndim), 1)


def _line() -> Where | None:
    """Return the innermost line of the user's code, below the call of the model; None if there is none."""
    frame: Any = sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__") == __name__:
        frame = frame.f_back
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("diagnostics."):
            return None
        if not is_installed_module(name):
            code = frame.f_code
            return Where(Path(code.co_filename).name, frame.f_lineno, code.co_name)
        frame = frame.f_back
    return None


@contextlib.contextmanager
def summaries_seen(model: nn.Module, rows: int, length: int) -> Iterator[list[str]]:
    """List the layers within that return one vector for each text, or begin from a given state."""
    found: list[str] = []

    def called(module: nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple | list) and output else output
        begun = isinstance(module, nn.RNNBase) and len(args) > 1 and args[1] is not None
        if not isinstance(first, Tensor) or first.ndim < 2:
            return
        counted = {length, rows * length}
        if begun or (rows in first.shape[:2] and not counted.intersection(first.shape)):
            found.append(type(module).__name__)

    handles = [m.register_forward_hook(called) for m in model.modules() if not any(m.children())]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


class _Attention(TorchFunctionMode):  # type: ignore[misc]  # mypy does not follow torch
    """Notes attention in which each of so many positions looks at each."""

    def __init__(self, length: int, seen: list[str]) -> None:
        super().__init__()
        self._sizes, self._seen = (length, length + EXTRA), seen

    def __torch_function__(
        self, function: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        options = kwargs or {}
        given: Any = args[0] if args else options.get("query", options.get("input"))
        if isinstance(given, Tensor) and given.ndim > 2:
            if function is F.scaled_dot_product_attention and given.shape[-2] in self._sizes:
                self._seen.append("scaled_dot_product_attention")
            elif function in SOFTMAXES and given.shape[-1] == given.shape[-2] and given.shape[-1] in self._sizes:
                self._seen.append("a softmax of scores")
        return function(*args, **options)


@contextlib.contextmanager
def attention_seen(model: nn.Module, length: int) -> Iterator[list[str]]:
    """List the attention over these positions within; in a module of PyTorch by its path."""
    seen: list[str] = []

    def hook(name: str) -> Callable[..., None]:
        def called(module: Any, args: Any, options: Any) -> None:
            query = args[0] if args else options.get("query")
            axis = 1 if module.batch_first else 0
            if isinstance(query, Tensor) and query.ndim == 3 and query.shape[axis] in (length, length + EXTRA):
                seen.append(name or type(module).__name__)

        return called

    handles = [
        module.register_forward_pre_hook(hook(name), with_kwargs=True)
        for name, module in model.named_modules()
        if isinstance(module, nn.MultiheadAttention)
    ]
    try:
        with _Attention(length, seen):
            yield seen
    finally:
        for handle in handles:
            handle.remove()

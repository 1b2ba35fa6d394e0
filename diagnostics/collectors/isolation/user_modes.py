"""Suspends a script's `TorchFunctionMode` and `TorchDispatchMode` while this library computes."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any


@contextlib.contextmanager
def without_user_modes() -> Iterator[None]:
    """Hide this thread's operations from the script's modes: a FLOP counter counts those of the script only.

    A default device stays in force, and so do PyTorch's own modes such as FakeTensorMode: tensors depend on them.
    """
    if not any(count() for count in mode_counters()):
        yield
        return
    torch = sys.modules["torch"]
    undo = [*_pop_function_modes(torch), *_pop_dispatch_modes(torch)]
    try:
        yield
    finally:
        while undo:
            undo.pop()()


def call_without_user_modes(work: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function `without_user_modes`; costs a fraction of a microsecond where there are none."""
    functions, dispatched = _counters or mode_counters()
    if not functions() and not dispatched():
        return work(*arguments, **options)
    with without_user_modes():
        return work(*arguments, **options)


def mode_counters() -> tuple[Callable[[], int], Callable[[], int]]:
    """Return what counts this thread's function modes and dispatch modes: 0 where PyTorch is not imported."""
    global _counters
    if _counters is None:
        torch: Any = sys.modules.get("torch")
        if torch is None or not hasattr(torch, "_C"):
            return _none, _none
        _counters = torch._C._len_torch_function_stack, torch._C._len_torch_dispatch_stack
    return _counters


def _none() -> int:
    return 0


_counters: tuple[Callable[[], int], Callable[[], int]] | None = None  # once PyTorch is imported


def _pop_function_modes(torch: Any) -> list[Callable[[], object]]:
    """Pop the modes; return functions that push them again, to be called in reverse order."""
    taken = [torch._C._pop_torch_function_stack() for _ in range(torch._C._len_torch_function_stack())]
    push = torch._C._push_on_torch_function_stack
    undo: list[Callable[[], object]] = [partial(push, mode) for mode in taken]
    devices = [mode for mode in taken if type(mode).__module__ == "torch.utils._device"]
    for mode in reversed(devices):
        torch._C._push_on_torch_function_stack(mode)
        undo.append(torch._C._pop_torch_function_stack)
    return undo


def _pop_dispatch_modes(torch: Any) -> list[Callable[[], object]]:
    undo: list[Callable[[], object]] = []
    while (count := torch._C._len_torch_dispatch_stack()) > 0:
        mode = torch._C._get_dispatch_stack_at(count - 1)
        if getattr(mode, "_mode_key", None) is not None:  # PyTorch's own, which are below all others
            break
        undo.append(partial(torch._C._push_on_torch_dispatch_stack, mode))
        torch._C._pop_torch_dispatch_stack(None)
    return undo

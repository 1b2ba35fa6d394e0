"""Hides what this library computes from those whom a script has put above its own operations.

They are its `TorchFunctionMode` and `TorchDispatchMode`, hooks on saved tensors, and a profiler.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from diagnostics.collectors.system.supported import missing_name

Questions = tuple[Callable[[], int], Callable[[], int], Callable[[bool], Any], Callable[[], bool]]
"""How many function modes and dispatch modes there are, the uppermost hooks, and whether a profiler runs."""

_NOBODY: Questions = (int, int, lambda _: None, bool)
_questions: Questions | None = None  # once PyTorch is imported
_local = threading.local()


def is_overseen() -> bool:
    """Whether anybody would see this thread's operations; costs a fraction of a microsecond."""
    functions, dispatched, hooks, profiled = _questions or _asked()
    return bool(functions() or dispatched() or hooks(True) is not None or profiled())


@contextlib.contextmanager
def without_user_modes() -> Iterator[None]:
    """Hide this thread's operations from the script's modes: a FLOP counter counts those of the script only.

    A default device stays in force, and so do PyTorch's own modes such as FakeTensorMode: tensors depend on them.
    """
    if not is_overseen():
        yield
        return
    torch = sys.modules["torch"]
    undo = [*_pop_function_modes(torch), *_pop_dispatch_modes(torch), *_pop_hooks(torch), *_pause_profiler(torch)]
    try:
        yield
    finally:
        while undo:
            undo.pop()()


def call_without_user_modes(work: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """Call a function `without_user_modes`."""
    if not is_overseen():
        return work(*arguments, **options)
    with without_user_modes():
        return work(*arguments, **options)


def _asked() -> Questions:
    global _questions
    torch: Any = sys.modules.get("torch")
    if not hasattr(getattr(torch, "_C", None), "_autograd") or missing_name(torch) is not None:
        return _NOBODY
    autograd = torch._C._autograd
    _questions = (
        torch._C._len_torch_function_stack,
        torch._C._len_torch_dispatch_stack,
        autograd._top_saved_tensors_default_hooks,
        autograd._profiler_enabled,
    )
    return _questions


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


def _pop_hooks(torch: Any) -> list[Callable[[], object]]:
    """Pop the hooks that pack what is saved for a backward pass: of offloading, of a checkpointed block."""
    undo: list[Callable[[], object]] = []
    autograd = torch._C._autograd
    if not autograd._saved_tensors_hooks_is_enabled():
        return undo
    while (pair := autograd._top_saved_tensors_default_hooks(True)) is not None:
        undo.append(partial(autograd._push_saved_tensors_default_hooks, *pair))
        autograd._pop_saved_tensors_default_hooks()
    return undo


def _pause_profiler(torch: Any) -> list[Callable[[], object]]:
    if getattr(_local, "paused", False) or not torch._C._autograd._profiler_enabled():
        return []
    _record(torch, False)
    return [partial(_record, torch, True)]


def _record(torch: Any, enabled: bool) -> None:
    _local.paused = not enabled  # PyTorch does not say: what is paused within a pause stays paused after it
    torch._C._autograd._enable_record_function(enabled)

"""Hooks on the user's model that are neither copied nor saved with it.

A script that keeps its best model by `copy.deepcopy(model)`, or writes `torch.save(model, path)`, would otherwise
take the watcher along: the copy would be watched, and the file could not be written. And `torch.jit.script(model)`
would try to compile it.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

# Where a module keeps hooks, and what it notes about them, all by the number of the hook.
_TABLES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)
_ours: set[int] = set()  # numbers of hooks; PyTorch gives each number once in a process
_plain_state = nn.Module.__getstate__  # that of `object`, until PyTorch gave modules their own
_scripting: Any = getattr(torch.jit, "_recursive", None)  # PyTorch's own business, and deprecated
_plain_scripting: Any = getattr(_scripting, "create_script_module", None)


class _Hook:
    """Calls a function; a copy of it, or what is read back from a file, does nothing.

    That is for classes that copy or save their modules in a way of their own, past `_state_without_ours`.
    """

    def __init__(self, work: Callable[..., None]) -> None:
        self._work: Callable[..., None] | None = work

    def __call__(self, *arguments: Any) -> None:
        if self._work is not None:
            self._work(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_work": None}


def hook_around(
    model: nn.Module, before: Callable[[nn.Module, Any, Any], None], after: Callable[[nn.Module, Any, Any], None]
) -> Callable[[], None]:
    """Call `before` with model, arguments and options, and `after` with model, arguments and output.

    Returns:
        A function that takes both hooks off.
    """
    handles = [
        model.register_forward_pre_hook(_Hook(before), with_kwargs=True),
        model.register_forward_hook(_Hook(after)),
    ]
    if not _ours:
        nn.Module.__getstate__ = _state_without_ours
        if _plain_scripting is not None:
            _scripting.create_script_module = _scripted_without_ours
    _ours.update(handle.id for handle in handles)

    def remove() -> None:
        for handle in handles:
            handle.remove()
            _ours.discard(handle.id)
        if not _ours:
            nn.Module.__getstate__ = _plain_state
            if _plain_scripting is not None:
                _scripting.create_script_module = _plain_scripting

    return remove


def _state_without_ours(module: nn.Module) -> Any:
    """Stand in for `Module.__getstate__`, which copying and pickling ask for what belongs to a module."""
    state = _plain_state(module)
    tables = {name: state[name] for name in _TABLES if state.get(name)}
    if not any(_ours.intersection(table) for table in tables.values()):
        return state
    return state | {
        name: OrderedDict((number, entry) for number, entry in table.items() if number not in _ours)
        for name, table in tables.items()
    }


def _scripted_without_ours(module: Any, *arguments: Any, **options: Any) -> Any:
    """Stand in for what `torch.jit.script` and `torch.jit.trace` turn a module into theirs by."""
    with _taken_off(module):
        return _plain_scripting(module, *arguments, **options)


@contextmanager
def _taken_off(model: nn.Module) -> Iterator[None]:
    tables = [vars(module)[name] for module in model.modules() for name in _TABLES if name in vars(module)]
    before = [(table, dict(table)) for table in tables if _ours.intersection(table)]
    for table, entries in before:
        for number in _ours.intersection(entries):
            del table[number]
    try:
        yield
    finally:
        for table, entries in before:
            table.clear()
            table.update(entries)

"""Hooks on the user's model that are neither copied nor saved with it, and hooks on its modules for one pass.

A script that keeps its best model by `copy.deepcopy(model)`, or writes `torch.save(model, path)`, would otherwise
include the watcher: the copy would be watched, and the file could not be written. And `torch.jit.script(model)`
would try to compile the hooks.
"""

from __future__ import annotations

import functools
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.isolation.recording import is_compiled, uncompiled

# Attributes in which a module keeps hooks and their settings, all by the number of the hook.
_TABLES = (
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
)
_ours: set[int] = set()  # numbers of hooks; PyTorch gives each number once in a process
_patches = Patches()
_scripting: Any = getattr(torch.jit, "_recursive", None)  # private to PyTorch, and deprecated

Guard = Callable[..., None]
"""Calls a function with the arguments that follow, and catches its faults."""

Work = Callable[[nn.Module, Any, Any, Any], None]

# In a model with more, modules are hooked in one sample of SELDOM: it costs as much as two steps, most of them for
# Python's garbage collection, which goes through all objects for so many new ones.
MANY_MODULES = 1000
SELDOM = 4


class _Hook:
    """Calls a function, but not in a compiled one; a copy of the hook, or one from a file, does nothing.

    Needed for classes that copy or save their modules in their own way, without `Module.__getstate__`.
    """

    def __init__(self, work: Callable[..., None]) -> None:
        self._work: Callable[..., None] | None = work

    def __call__(self, *arguments: Any) -> None:
        if not is_compiled() and self._work is not None:
            self._work(*arguments)

    def __getstate__(self) -> dict[str, Any]:
        return {"_work": None}


uncompiled(_Hook.__call__.__code__)


def hook_around(
    model: nn.Module, before: Callable[[nn.Module, Any, Any], None], after: Callable[[nn.Module, Any, Any], None]
) -> Callable[[], None]:
    """Call `before` with model, arguments and options, and `after` with model, arguments and output.

    Returns:
        A function that removes both hooks.
    """
    handles = [
        model.register_forward_pre_hook(_Hook(before), with_kwargs=True),
        model.register_forward_hook(_Hook(after)),
    ]
    if not _ours:
        _patches.around(nn.Module, "__getstate__", _state_without_ours)
        if hasattr(_scripting, "create_script_module"):
            _patches.around(_scripting, "create_script_module", _scripted_without_ours)
    _ours.update(handle.id for handle in handles)

    def remove() -> None:
        for handle in handles:
            handle.remove()
            _ours.discard(handle.id)
        if not _ours:
            _patches.undo()

    return remove


class ModuleHooks:
    """One hook per module, shared by all measurements: the hook itself is the cost.

    Args:
        model: whose modules are hooked.

    Attributes:
        are_open: whether the hooks are there.
    """

    def __init__(self, model: nn.Module) -> None:
        self.are_open, self._count = False, 0
        self._many = sum(1 for _ in model.modules()) > MANY_MODULES
        self._wanted: dict[int, tuple[nn.Module, list[tuple[Guard, Work]]]] = {}
        self._handles: list[Any] = []

    def add(self, module: nn.Module, guard: Guard, work: Work) -> None:
        """Run `work` by `guard` after each call of the module, from `attach` on."""
        self._wanted.setdefault(id(module), (module, []))[1].append((guard, work))

    def are_wanted(self) -> bool:
        """Count a sampled step, and return whether to hook the modules in it."""
        self._count += 1
        return not self._many or self._count % SELDOM == 1

    def attach(self) -> None:
        """Register the hooks."""
        self.are_open = True
        for module, works in self._wanted.values():
            hook = functools.partial(_called, works)
            self._handles.append(module.register_forward_hook(hook, with_kwargs=True))

    def close(self) -> None:
        """Remove the hooks."""
        self.are_open = False
        self._wanted.clear()
        while self._handles:
            self._handles.pop().remove()


def _called(works: list[tuple[Guard, Work]], module: nn.Module, args: Any, *rest: Any) -> None:
    # PyTorch calls the hook of a model with one layer once more after its removal, without keyword arguments.
    named = rest[0] if len(rest) > 1 else {}
    for guard, work in works:
        guard(work, module, args, named, rest[-1])


def _state_without_ours(original: Callable[[nn.Module], Any]) -> Callable[[nn.Module], Any]:
    """Return a `Module.__getstate__`, which copying and pickling call, that leaves out our hooks."""

    def getstate(module: nn.Module) -> Any:
        state = original(module)
        tables = {name: state[name] for name in _TABLES if state.get(name)}
        if not any(_ours.intersection(table) for table in tables.values()):
            return state
        return state | {
            name: OrderedDict((number, entry) for number, entry in table.items() if number not in _ours)
            for name, table in tables.items()
        }

    return getstate


def _scripted_without_ours(original: Callable[..., Any]) -> Callable[..., Any]:
    """Return a `create_script_module`, which script and trace of `torch.jit` call, that leaves out our hooks."""

    def create_script_module(module: Any, *arguments: Any, **options: Any) -> Any:
        with _taken_off(module):
            return original(module, *arguments, **options)

    return create_script_module


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

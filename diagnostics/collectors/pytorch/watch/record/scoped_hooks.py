"""Module hooks that exist for one forward pass only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from torch import nn

Guard = Callable[..., None]
"""Calls a function with the arguments that follow, and catches its faults."""

Work = Callable[[nn.Module, Any, Any, Any], None]

# In a model with more, modules are hooked in one sample of SELDOM: it costs as much as two steps, most of them for
# Python's garbage collection, which goes through all objects for so many new ones.
MANY_MODULES = 1000
SELDOM = 4


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

"""Module hooks that exist for one forward pass only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

from torch import nn

from diagnostics.collectors.isolation.recording import is_recorded
from diagnostics.tensor_probe import listening

Guard = Callable[..., None]
"""Calls a function with the arguments that follow, and catches its faults."""

Work = Callable[[nn.Module, Any, Any, Any], None]


class ModuleHooks:
    """One hook per module, shared by all measurements: the hook itself is the cost."""

    def __init__(self) -> None:
        self._wanted: dict[int, tuple[nn.Module, list[tuple[Guard, Work]]]] = {}
        self._handles: list[Any] = []

    def add(self, module: nn.Module, guard: Guard, work: Work) -> None:
        """Run `work` by `guard` after each call of the module, from `attach` on."""
        self._wanted.setdefault(id(module), (module, []))[1].append((guard, work))

    def attach(self) -> None:
        """Register the hooks."""
        for module, works in self._wanted.values():
            hook = functools.partial(_called, works)
            self._handles.append(module.register_forward_hook(hook, with_kwargs=True))

    def close(self) -> None:
        """Remove the hooks."""
        self._wanted.clear()
        while self._handles:
            self._handles.pop().remove()


def _called(works: list[tuple[Guard, Work]], module: nn.Module, args: Any, *rest: Any) -> None:
    # PyTorch calls the hook of a model with one layer once more after its removal, without keyword arguments.
    named = rest[0] if len(rest) > 1 else {}
    for guard, work in works:
        guard(work, module, args, named, rest[-1])


class ScopedHooks:
    """The base class of measurements by hooks.

    Args:
        guard: runs the work in the hooks.
        hooks: shared with the other measurements of the same model; its owner attaches and closes it.
    """

    def __init__(self, guard: Guard, hooks: ModuleHooks) -> None:
        self._guard = guard
        self._hooks = hooks
        self._probed = ExitStack()
        self._is_open = False

    def open(self, step: int) -> None:
        """Measure the pass that is about to run."""
        self.close()
        self._is_open = True

    def after(self, module: nn.Module, look: Work) -> None:
        """Call `look` with module, positional and named arguments, and output, each time the module has run."""
        self._hooks.add(module, self._guard, look)

    def at_probes(self, look: Callable[[Any, str], None]) -> None:
        """Call `look` with each value that the model passes to `diagnostics.probe`, and with its name."""
        listener = functools.partial(self._guard, look)
        self._probed.enter_context(listening(listener, is_recorded))

    def close(self) -> None:
        """Stop measuring."""
        self._is_open = False
        self._probed.close()

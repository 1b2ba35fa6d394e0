"""Looks into one forward pass: hooks that are put on modules just before it and taken off right after."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import torch
from torch import nn

from diagnostics.tensor_probe import listening

Guard = Callable[..., None]
"""Calls what is handed to it, with the arguments that follow, and survives its faults."""


class Look:
    """What the looks of one kind have in common."""

    def __init__(self, guard: Guard) -> None:
        self._guard = guard
        self._handles: list[Any] = []
        self._probed = ExitStack()

    def after(self, module: nn.Module, look: Callable[[nn.Module, Any, Any, Any], None]) -> None:
        """Call `look` with module, positional and named arguments, and output, each time the module has run."""

        def hook(module: nn.Module, args: Any, *rest: Any) -> None:
            # Of a model that is one layer PyTorch calls it once more after it was taken off, without the names.
            self._guard(look, module, args, rest[0] if len(rest) > 1 else {}, rest[-1])

        self._handles.append(module.register_forward_hook(hook, with_kwargs=True))

    def at_probes(self, look: Callable[[Any, str], None]) -> None:
        """Call `look` with each value that the model shows by `diagnostics.probe`, and with its name."""
        listener = functools.partial(self._guard, look)
        self._probed.enter_context(listening(listener, torch.compiler.is_compiling))

    def close(self) -> None:
        """Take all hooks off again."""
        self._probed.close()
        while self._handles:
            self._handles.pop().remove()

"""Calls a function after each step of a script's trainings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.taps.keras import train_batch_end

_of_loops: list[Callable[[object], object]] = []


def loop_stepped(optimizer: object) -> None:
    """Tell of a step of a Keras optimizer outside of `fit`."""
    for then in tuple(_of_loops):
        then(optimizer)


def after_each_step(then: Callable[[object], object], at_exit: contextlib.ExitStack) -> None:
    """Call a function after each optimizer step, and each batch that `fit` of Keras has trained on.

    Args:
        then: is given the optimizer, and None in `fit`. What it raises reaches the script.
        at_exit: ends it.
    """

    def stepped(optimizer: Any, *_: Any) -> None:
        then(optimizer)

    def trained(*_: Any, **__: Any) -> None:
        then(None)

    def with_torch(_torch: Any) -> None:
        try:
            from diagnostics.taps.torch import optimizer_step
        except ImportError:  # the script has its own `torch.py`
            return
        at_exit.callback(optimizer_step.after.subscribe(stepped))

    def with_keras(_module: Any) -> None:
        at_exit.callback(train_batch_end.after.subscribe(trained))

    _of_loops.append(then)
    at_exit.callback(_of_loops.remove, then)
    at_exit.callback(after_import("torch", with_torch))
    at_exit.callback(after_import(train_batch_end.module, with_keras))

"""Calls a function after each step of a script's trainings."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from diagnostics.collectors.isolation.import_hooks import after_import
from diagnostics.taps.keras import train_batch_end


def after_each_step(then: Callable[[object], object], at_exit: contextlib.ExitStack) -> None:
    """Call a function after each optimizer step of PyTorch, and each batch that Keras has trained on.

    Args:
        then: is given the optimizer, and None in Keras. What it raises reaches the script.
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

    at_exit.callback(after_import("torch", with_torch))
    at_exit.callback(after_import(train_batch_end.module, with_keras))

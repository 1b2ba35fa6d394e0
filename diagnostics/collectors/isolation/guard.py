"""The parts of a watch: one that fails is switched off and says so, and the user's loop goes on."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal

import torch

from diagnostics.errors import message_of

from .exhaustion import is_out_of_memory
from .user_modes import call_without_user_modes

# What every call raises once a kernel has failed. Before PyTorch 2.8 it was a RuntimeError like many others.
DEVICE_FAILED: tuple[type[Exception], ...] = tuple(filter(None, [getattr(torch, "AcceleratorError", None)]))
_function_modes: Callable[[], int] = torch._C._len_torch_function_stack
_dispatch_modes: Callable[[], int] = torch._C._len_torch_dispatch_stack

Part = Literal[
    "forward passes",
    "loss",
    "evaluation",
    "backward passes",
    "gradients",
    "updates",
    "weights",
    "activations",
    "recurrences",
    "predictions",
    "readings",
    "trace",
]


class FaultGuard:
    """Does the work of each part until it fails.

    Attributes:
        faults: by part, what went wrong in the watcher itself; empty where the script had broken what it needs.
        uncovered: by part, why it could not be watched.
        unusual: tensors of the model that do not do all that others do, in words; empty if there are none.
    """

    def __init__(self, faults: dict[str, str] | None = None) -> None:
        self.faults: dict[str, str] = {} if faults is None else faults
        self.unusual = ""
        self.uncovered: dict[str, str] = {}

    def run(self, part: Part, work: Callable[..., None], *arguments: Any) -> None:
        """Do a part's work, unless it has failed before."""
        if part in self.faults:
            return
        try:
            if _function_modes() or _dispatch_modes():  # asked here: this is called for every module
                call_without_user_modes(work, *arguments)
            else:
                work(*arguments)
        except Exception as fault:  # ours: a line in the report, never an exception in the user's loop
            self.ended(part, fault)

    def hook(self, part: Part, work: Callable[..., None], number: int) -> Callable[..., None]:
        """Return a hook that does a part's work for the optimizer of that number."""
        return functools.partial(self.run, part, work, number)

    def ended(self, part: Part, fault: Exception) -> None:
        """Switch a part off, and say why."""
        failed = isinstance(fault, DEVICE_FAILED)
        if failed or is_out_of_memory(fault):  # the script's failure, not ours
            lacking = "the device failed, and nothing can be read from it now" if failed else "memory ran out"
            self.faults[part], self.uncovered[part] = "", lacking
            return
        said = f"{type(fault).__name__}: {message_of(fault)}"
        if self.unusual:
            self.faults[part] = ""
            self.uncovered[part] = f"{self.unusual} do not allow it: {said}"
            return
        self.faults[part] = f"watching the {part} ended: {said}"

"""Probes of the loops of a script, and what they hear of. Their files are in the folder `probes`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from torch import nn

from diagnostics.collectors.probe import Probe
from diagnostics.taps.torch import ModuleCall

from .first_step_pipeline import FirstPass


class LoopProbe(Probe[Any]):
    """Measures one thing that shows beside the loops, or between them; the subject is `LoopFinder`."""

    def on_loop(self, model: nn.Module, watching: Any, before: Any) -> None:
        """A loop begins; `before` watched one of the same model, None if there was none."""

    def on_first_pass(self, model: nn.Module, seen: FirstPass) -> None:
        """Before the first backward pass of a model."""

    def on_step(self, optimizer: Any, watching: Any, steps: int) -> None:
        """After a step of any optimizer; of a loop, also what watches it, and its number, counted from 1."""

    def on_load(self, holder: Any, state: Any = None, *_: Any, **options: Any) -> None:
        """Before `load_state_dict` of a module or an optimizer."""

    def on_evaluation(self, module: nn.Module, inputs: Any) -> None:
        """Before the script calls a module, but for one in training mode and with gradients."""

    def on_call(self, call: ModuleCall) -> None:
        """Before the script calls a module."""

    def facts(self) -> Iterator[tuple[Any, Any]]:
        """Yield facts at the script's end, each with what watches the loop that it is about."""
        yield from ()

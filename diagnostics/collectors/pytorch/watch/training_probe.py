"""Probes of a watched training, and what they hear of. Their files are in the folder `metrics`."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.recording import is_recorded
from diagnostics.collectors.probe import Probe, Probes
from diagnostics.collectors.pytorch.watch.record.model_hooks import ModuleHooks, Work
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.facts.training import TrainingHistory
from diagnostics.tensor_probe import listening


class WatchedModel(Protocol):
    """What may be asked of a watcher.

    Attributes:
        model: not compiled.
        device: of its parameters.
        layers: its parameters.
        optimizers: that step on them.
        held: by optimizer, the parameters of the model that it holds, with their numbers.
        compiled: whether the model is called through torch.compile: then no module within it is measured.
        hooks: on its modules, for one pass.
        guard: runs the work of each part.
        probes: measure it.
        trained_before: whether the same process has trained the model already, in another loop.
        on_broken: called before an optimizer steps on gradients that are not finite; None for nothing.
        shows_batch: whether rows of the first batches are kept for the report.
    """

    model: nn.Module
    device: torch.device
    layers: Layers
    optimizers: list[Any]
    held: list[list[tuple[int, nn.Parameter]]]
    compiled: bool
    hooks: ModuleHooks
    guard: FaultGuard
    probes: Probes[TrainingProbe]
    trained_before: bool
    on_broken: Callable[[], object] | None
    shows_batch: bool

    @property
    def steps(self) -> int:
        """Steps made so far."""

    def is_own(self) -> bool:
        """Whether the training thread asks, or that thread has ended."""

    def history(self) -> TrainingHistory:
        """Return the run so far."""


def are_maximized(optimizers: list[Any]) -> bool:
    """Whether optimizers go up the gradient in all of their groups."""
    groups = [group for optimizer in optimizers for group in getattr(optimizer, "param_groups", ())]
    return bool(groups) and all(group.get("maximize") is True for group in groups)


def last_rows(model: nn.Module) -> int:
    """Return the rows of the last parameter: a class each, unless the model scores candidates, one by one."""
    last = list(model.parameters())[-1:]
    return len(last[0]) if last and last[0].ndim else 0


class TrainingProbe(Probe[WatchedModel]):
    """Measures one thing of sampled steps or of evaluations, within the hooks of the watcher.

    `step` is the number of steps made.
    """

    when = "sampled"

    def on_training_begin(self) -> None:
        """Before the first step."""

    def on_pass_begin(self, step: int, args: Any, kwargs: Any) -> None:
        """Before the first pass of a sampled step."""

    def on_early_pass(self, step: int, args: Any, kwargs: Any) -> None:
        """Before the first pass of each of the first `EARLY` steps."""

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """After a pass of a sampled step; its inputs are None where they have changed meanwhile."""

    def on_backward(self, step: int) -> None:
        """Before a backward pass."""

    def on_labels(self, step: int, labels: Any) -> None:
        """Called with the labels of a sampled step, by the loop."""

    def on_step(self, step: int, number: int) -> None:
        """Before a sampled step of an optimizer, given by its number."""

    def on_gradients(self, step: int, gradients: list[Tensor], which: tuple[int, ...]) -> None:
        """Called with the gradients of a sampled step, and the numbers of their parameters."""

    def on_evaluation_begin(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Before a pass with gradients off, in the training mode or not."""

    def on_evaluation_end(self, step: int, output: Any) -> None:
        """After a pass with gradients off."""

    def on_training_again(self) -> None:
        """Before the first pass with gradients after an evaluation, and at the end."""

    def on_modules(self, step: int) -> None:
        """Before a pass in which modules are hooked; see `ModuleProbe`."""

    def on_unhooked(self) -> None:
        """After the hooks of a pass were removed."""

    def on_read(self, step: int) -> None:
        """Read what is pending from the device; another thread may train."""


class ModuleProbe(TrainingProbe):
    """Measures modules, within hooks that all such probes share."""

    part = "activations"

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._guard, self._probed = partial(subject.guard.run, self.part), ExitStack()

    def after(self, module: nn.Module, look: Work) -> None:
        """Call `look` with module, positional and named arguments, and output, each time the module has run."""
        self.subject.hooks.add(module, self._guard, look)

    def at_probes(self, look: Callable[[Any, str], None]) -> None:
        """Call `look` with each value that the model passes to `diagnostics.probe`, and with its name."""
        self._probed.enter_context(listening(partial(self._guard, look), is_recorded))

    def on_unhooked(self) -> None:
        """Hear no more of `diagnostics.probe`."""
        self._probed.close()

"""Runs what is measured in sampled steps and in evaluations, beside losses, gradients and updates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.discover.latest_batch import latest_batch
from diagnostics.collectors.pytorch.idle_settings import IdleSettings
from diagnostics.collectors.pytorch.optimizer import replaced_since
from diagnostics.collectors.pytorch.watch.metrics.equal_units import EqualUnits
from diagnostics.collectors.pytorch.watch.metrics.evaluation_draws import EvaluationOpenings
from diagnostics.collectors.pytorch.watch.metrics.input_samples import InputSamples
from diagnostics.collectors.pytorch.watch.metrics.live_graphs import LiveGraphs
from diagnostics.collectors.pytorch.watch.metrics.no_grad_passes import NoGradPasses
from diagnostics.collectors.pytorch.watch.metrics.outputs.opposed_gradients import OutputPush
from diagnostics.collectors.pytorch.watch.metrics.outputs.predictions import Predictions, labels_in
from diagnostics.collectors.pytorch.watch.metrics.outputs.targets import Targets
from diagnostics.collectors.pytorch.watch.metrics.rounded_updates import RoundedUpdates
from diagnostics.collectors.pytorch.watch.metrics.running_statistics import batch_norm_facts
from diagnostics.collectors.pytorch.watch.metrics.samplers import Samplers
from diagnostics.collectors.pytorch.watch.metrics.train_mode import TrainModes
from diagnostics.collectors.pytorch.watch.record.captured_pass import CapturedPass
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.facts.pipeline import OptimizerFacts
from diagnostics.facts.training import LossHistory, PredictionFacts

POOR = 0.7  # share of right answers in evaluations, below which they may be at chance


class Measurements:
    """The measurements of one model; those that fail are switched off one by one.

    Args:
        model: not compiled.
        layers: its parameters.
        optimizers: that step on them.
        held: by optimizer, the parameters of the model that it holds, with their numbers.
        guard: runs each part.
        compiled: whether the model is called through torch.compile: then no module within it is measured.

    Attributes:
        activations: the hooks on modules.
        predictions: what a classifier answers.
        no_grad: the passes with gradients off.
    """

    def __init__(
        self,
        model: nn.Module,
        layers: Layers,
        optimizers: list[Any],
        held: list[Any],
        guard: FaultGuard,
        compiled: bool,
    ) -> None:
        self._model, self._layers, self._optimizers = model, layers, optimizers
        self._safely, self._faults, self._compiled = guard.run, guard.faults, compiled
        self.activations = Samplers(model, layers, guard.run)
        self.predictions = Predictions()
        self.no_grad = NoGradPasses(model)
        self._targets = Targets()
        self._push = OutputPush()
        self._inputs = InputSamples()
        self._openings = EvaluationOpenings()
        self._modes = TrainModes(model)
        self._graphs = LiveGraphs()
        self._equal_units = EqualUnits()
        self._rounding = RoundedUpdates(layers, optimizers, held)
        self._held, self._settings = held, IdleSettings(model)
        self._known = {id(parameter) for parameter in model.parameters()}
        still = [p for p in model.parameters() if not p.requires_grad and not p.is_inference()]
        self._frozen = {id(parameter): parameter._version for parameter in still}
        self._replaced: OptimizerFacts | None = None
        self._labels: Any = None  # that the running pass was called with
        self._beside: Tensor | None = None  # integers that stand in the loader's batch beside its inputs

    # Called within the hooks of the watcher; `step` is the number of steps made.

    def evaluation_begins(self, step: int, training: bool, args: Any, kwargs: Any) -> None:
        """Look at the arguments of a pass with gradients off; `training`: the mode of the model."""
        self._labels = labels_in(kwargs)
        self._safely("predictions", self._look_beside, (args, kwargs))
        self.no_grad.add(step, training, args, kwargs)
        self._safely("inputs", self._inputs.evaluation, step, args, kwargs)
        self._safely("openings", self._openings.evaluation, step, (args, kwargs), self._beside)

    def evaluation_ends(self, step: int, output: Any) -> None:
        """Look at the output of a pass with gradients off."""
        self._safely("predictions", self.predictions.evaluation, step, output, self._labels, self._beside)
        if "targets" not in self._faults:
            self._safely("targets", self._targets.evaluation, step, output)

    def pass_begins(self, step: int, args: Any, kwargs: Any) -> None:
        """Look at the arguments of the first pass of a sampled step."""
        self._labels = labels_in(kwargs)
        self._safely("predictions", self._look_beside, (args, kwargs))
        self._safely("inputs", self._inputs.training, args, kwargs)
        self._openings.training()
        if not self._compiled:
            self._safely("activations", self.activations.open, step)

    def pass_ends(self, step: int, output: Any, kept: CapturedPass | None) -> None:
        """Look at the output of a pass of a sampled step."""
        self._safely("predictions", self._look_at, step, output, kept)

    def training_goes_on(self) -> None:
        """Hear no more losses of an evaluation."""
        self.predictions.training_goes_on()
        self._targets.training_goes_on()

    def forget_labels(self) -> None:
        """Drop the labels that the pass was called with: it is over."""
        self._labels = self._beside = None

    def labels(self, step: int, labels: Any) -> None:
        """Take the labels of a sampled step from the loop."""
        self._safely("predictions", self.predictions.labels, step, labels)

    def backward_begins(self, step: int) -> None:
        """Look at the mode of the layers."""
        self._modes.look(step)

    def training_begins(self) -> None:
        """Look at the weights before the first step."""
        self._safely("equal units", self._equal_units.begin_once, self._layers.parameters)

    def step_begins(self, step: int, number: int) -> None:
        """Look at the weights before a sampled step of an optimizer, given by its number."""
        self._safely("rounding", self._rounding.look, step, number)
        stepped_on = [parameter for _, parameter in self._held[number]]
        self._safely("settings", self._settings.look, number, self._optimizers[number], stepped_on)

    def gradients(self, step: int, gradients: list[Tensor], which: tuple[int, ...]) -> None:
        """Look at the gradients of a sampled step; `which`: the numbers of their parameters."""
        self._safely("activations", self.activations.gradients, step, gradients, which)

    def _look_beside(self, arguments: Any) -> None:
        self._beside = latest_batch.labels_beside(arguments)

    def _look_at(self, step: int, output: Any, kept: CapturedPass | None) -> None:
        self.predictions.training(step, output, self._labels, self._beside)
        self._graphs.mark(step, output)
        if "targets" not in self._faults:
            inputs = None if kept is None or kept.changed else kept.inputs
            self._safely("targets", self._targets.training, step, output, inputs)
            self._safely("push", self._push.training, output, inputs)

    # Reading.

    def read(self, step: int) -> None:
        """Read what is pending from the device."""
        self.activations.read()
        self._safely("predictions", self.predictions.read, step, False)
        self._safely("targets", self._targets.read)
        self._safely("push", self._push.read)

    def read_beside(self, step: int) -> None:
        """Read what may be read while another thread trains."""
        self.activations.read()
        self.predictions.read(step, False)

    def facts(self, step: int, own: bool, losses: Callable[[], LossHistory | None]) -> tuple[Any, ...]:
        """Return the facts so far.

        Args:
            step: number of steps made.
            own: whether the training thread asks, or that thread has ended.
            losses: returns those of the run.
        """
        self._safely("predictions", self.predictions.read, step, own)
        self._safely("rounding", self._rounding.read)
        self._safely("layers", self._look_for_replaced, step)
        self._safely("targets", self._targets.read)
        self._safely("push", self._push.read)
        maximized = _maximize(self._optimizers)
        predictions = self.predictions.facts()
        found: list[Any] = [
            predictions,
            self._inputs.facts(),
            self._inputs.drawn(),
            self._modes.facts(),
            self._graphs.facts(),
            self._rounding.facts(),
            self._settings.facts(),
            self._replaced,
        ]
        self._safely("openings", lambda: found.append(self._openings.facts()))
        fits = predictions is not None and _is_poor(predictions)  # the reason may be wanted
        self._safely("targets", lambda: found.append(self._targets.facts(losses(), fits)))
        self._safely("targets", lambda: found.extend((self._targets.repeated, self._targets.drawn())))
        self._safely("targets", lambda: found.append(self._targets.negated(losses(), maximized)))
        self._safely("push", lambda: found.append(self._push.facts(maximized)))
        self._safely("targets", lambda: found.append(self._targets.sides(self._inputs.facts())))
        self._safely("equal units", lambda: found.append(self._equal_units.facts()))
        self._safely("batch norm", lambda: found.append(batch_norm_facts(self._model)))
        return tuple(facts for facts in (*found, *self.activations.facts()) if facts is not None)

    def _look_for_replaced(self, step: int) -> None:
        if self._optimizers and step:
            self._replaced = replaced_since(self._optimizers, self._model, self._known, self._frozen)


def _maximize(optimizers: list[Any]) -> bool:
    """Whether the optimizers go up the gradient in all of their groups."""
    groups = [group for optimizer in optimizers for group in getattr(optimizer, "param_groups", ())]
    return bool(groups) and all(group.get("maximize") is True for group in groups)


def _is_poor(predictions: PredictionFacts) -> bool:
    """Whether the evaluations may be at chance."""
    right, labels = predictions.evaluation_right, int(predictions.evaluation_labels.sum())
    return right is not None and bool(labels) and int(right.sum()) < POOR * labels

"""What calls of a script tell, their order and their arguments: plain numbers and NumPy arrays, no framework."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar

from diagnostics.facts.frozen import frozen

from .array import Array
from .where import Where


def _no_norms() -> Array:
    import numpy as np

    return np.zeros(0)


@frozen
class ClipFacts:
    """The calls that clip the gradients of the model, with a finite limit.

    A call is useless if no backward pass lies between the optimizer's last step and the call, and no step between
    the call and the next backward pass: it changes gradients that nobody uses again, or none at all.

    Attributes:
        function: that clips: ``clip_grad_norm_`` or ``clip_grad_value_``; of several the latest.
        limit: its maximum.
        in_time: calls between a backward pass and the step that uses it.
        useless: all other calls.
        norms: float64 (k,), norms that useless calls of ``clip_grad_norm_`` found, the latest ones; 0 where there
            were no gradients.
        cleared: whether the useless calls found no gradients, as before the backward pass.
        where: the line of the first useless call; None if it is not known.
        cut_to: the limit of the latest call of ``clip_grad_norm_`` in time; NaN if there was none.
        cut_from: float64 (k,), norms that such calls found, the latest ones.
    """

    described: ClassVar[str] = "calls that clip the gradients"

    function: str
    limit: float
    in_time: int
    useless: int
    norms: Array
    cleared: bool
    where: Where | None = None
    cut_to: float = math.nan
    cut_from: Array = field(default_factory=_no_norms)


@frozen
class ScaledClipFacts:
    """The steps of a loss scaler whose gradients were clipped between the backward pass and the step.

    Attributes:
        function: that clips: ``clip_grad_norm_`` or ``clip_grad_value_``; of several the latest.
        limit: its maximum.
        steps: of the scaler.
        scaled: those at which the gradients had been clipped while they were scaled, without ``unscale_``.
        norms: float64 (k,), norms of the scaled gradients, before they were clipped; NaN where not known.
        scales: float64 (k,), the factors of these.
        where: the line of the first call; None if it is not known.
    """

    described: ClassVar[str] = "gradients of a scaled loss that were clipped"

    function: str
    limit: float
    steps: int
    scaled: int
    norms: Array
    scales: Array
    where: Where | None = None


@frozen
class TapesWithoutGradient:
    """Tapes of TensorFlow that recorded a pass, and were asked for no gradient before the optimizer's next step.

    Attributes:
        steps: of the optimizer.
        tapes: all of them.
        fewest: before any one step.
    """

    described: ClassVar[str] = "tapes that were asked for no gradient"

    steps: int
    tapes: int
    fewest: int


@frozen
class UnreadLosses:
    """Losses of the layers of a Keras model that no step of the user's own has read.

    Attributes:
        step: whose: ``train_step`` or ``compute_loss`` of the model, or a ``loop`` of the script.
        penalized: paths of layers with a regularizer.
        added: names of layers that call ``add_loss``, also by an activity regularizer.
    """

    described: ClassVar[str] = "losses of the layers that no step has read"

    step: str
    penalized: tuple[str, ...]
    added: tuple[str, ...]


@frozen
class EmptyFit:
    """A `fit` of Keras that makes no step, as its first epoch is beyond its last.

    Attributes:
        epochs: the argument: the number of the last epoch, and not how many there are.
        initial_epoch: the argument, counted from 0.
        fitted: epochs of the `fit` before; None if there was none, as where a training is resumed.
    """

    described: ClassVar[str] = "a fit without a single epoch"

    epochs: int
    initial_epoch: int
    fitted: int | None


@frozen
class TrainingModeCalls:
    """The latest calls of a fitted Keras model by the script, all of them with ``training=True``.

    Calls in a training step, as under a tape, are left out, and those before a call in inference mode.

    Attributes:
        passes: how many calls.
        rows: of their inputs, together.
        repeated: whether some had the same input, as where predictions are averaged over dropout.
        layers: names of those that behave differently in training.
        keeps_statistics: for each, whether it updates a state of its own in training mode: batch norm.
    """

    described: ClassVar[str] = "calls of the fitted model in training mode"

    passes: int
    rows: int
    repeated: bool
    layers: tuple[str, ...]
    keeps_statistics: tuple[bool, ...]


@frozen
class FrozenCalls:
    """Calls of `train_on_batch` of a Keras model none of whose weights is trainable in any of them.

    Attributes:
        model: its name.
        calls: how many.
        weights: numbers in its weights.
    """

    described: ClassVar[str] = "calls that train a frozen model"

    model: str
    calls: int
    weights: int


@frozen
class StepOrderFacts:
    """Whether the steps of the loop's optimizers came after a backward pass, with its gradients.

    Attributes:
        steps: of all its optimizers.
        cleared: steps between which and the backward pass before `zero_grad` was called.
        without_backward: steps with no backward pass since the step before.
        passes: backward passes of the script, of any loss, while the loop was watched.
        zeroed: calls of `zero_grad` of its optimizers, and of the model where some optimizer stepped in between.
        moved: whether the first of the model's parameters has changed in the meantime, as far as a few of its
            numbers show.
        discarded: times that `zero_grad` cleared the gradients of backward passes that no step had used, where the
            next pass was of other examples; 0 if the script reads gradients itself, and may have kept them.
        where: the line of the first of these; None if it is not known.
        scaled: losses that a loss scaler scaled meanwhile.
        unscaled: calls of its `step` or `unscale_`; -1 if the script reads gradients itself, and may divide them.
    """

    described: ClassVar[str] = "the order of backward and step"

    steps: int
    cleared: int
    without_backward: int
    passes: int
    zeroed: int
    moved: bool
    discarded: int = 0
    where: Where | None = None
    scaled: int = 0
    unscaled: int = 0


@frozen
class ObjectLedger:
    """What a script did with other models of a trained one's class, and with the optimizers of a model.

    Attributes:
        name: the class of the models.
        untrained_rows: given after the last step to models that were never trained, while the trained one was
            given none; None where they were not counted.
        loader: what would load the weights of such a model.
        self_loads: of its own weights into a model that is not trained, and was never loaded in another way.
        where: the latest of these calls.
        stale_layers: of batch norm, in a model with the weights of the trained one, or their average: their
            running statistics are those that a layer is made with.
        batches: that the statistics of the trained model have seen.
        optimizer: class of those that made one step each, and kept a state.
        lone_steps: of these, in a row.
        lost: sizes, by name, of matrices that the trained model has trained, while the other one, evaluated after
            a load, has them as they were initialised.
        restored: matrices that the two have in common, and that were trained.
        recurrent: a layer of the trained model that was evaluated position by position, and given no state.
        lone_positions: calls of it in a row, each of one position that was made from the output before it.
        trained_length: positions of the shortest sequence that it was trained on.
    """

    described: ClassVar[str] = "other models and optimizers than the trained ones"

    name: str
    untrained_rows: int | None = 0
    loader: str = "model.load_state_dict(torch.load(path))"
    self_loads: int = 0
    where: Where | None = None
    stale_layers: tuple[str, ...] = ()
    batches: int = 0
    optimizer: str = ""
    lone_steps: int = 0
    lost: Mapping[str, int] = field(default_factory=dict)
    restored: int = 0
    recurrent: str = ""
    lone_positions: int = 0
    trained_length: int = 0


@frozen
class RestoredWeights:
    """Weights that were taken from the trained model by reference, changed with it, and were used later.

    Attributes:
        taken_after: steps of the optimizer made when ``state_dict`` gave them.
        used_after: steps made when they were loaded; the same if state dicts taken earlier had been kept over
            some steps, so that these are the best by chance.
        by_itself: whether the trained model loaded them, which changes nothing; else another model did.
        times_taken: how often ``state_dict`` was called for such weights, after different numbers of steps.
        tensors: parameters that were loaded.
        where: the line of the call; None if it is not known.
    """

    taken_after: int
    used_after: int
    by_itself: bool
    times_taken: int
    tensors: int
    where: Where | None = None


COLLECTED = 4
"""State dicts held at once: the variables of a best, the latest and the next checkpoint may hold three."""


@frozen
class RestoreFacts:
    """The calls of ``load_state_dict`` that are about weights of the trained model.

    Attributes:
        loads: how many there were.
        stale: those that loaded weights which had changed since they were taken, as they shared their memory with
            the model; the first ones.
        num_stale: how many of those there were.
        held: how many state dicts, taken after different steps, the script held at once while they shared the
            memory of the model's trainable parameters.
        where: the line that took the latest of these; None if it is not known.
    """

    described: ClassVar[str] = "calls of load_state_dict"

    loads: int
    stale: tuple[RestoredWeights, ...]
    num_stale: int
    held: int = 0
    where: Where | None = None


@frozen
class LoadedKeys:
    """A load with ``strict=False`` into a model that is trained or evaluated, of whose keys some did not fit.

    Attributes:
        model: class name of the module that was loaded.
        keys: of that module.
        missing: of these, the ones that the state dict lacks.
        unexpected: keys of the state dict that the module lacks.
        loaded: keys of the state dict that fit.
        where: the line of the call; None if it is not known.
        trained: whether the model is trained; if not, it was evaluated with the weights that the load left.
    """

    described: ClassVar[str] = "a load with strict=False"

    model: str
    keys: int
    missing: tuple[str, ...]
    unexpected: tuple[str, ...]
    loaded: int
    where: Where | None = None
    trained: bool = True


@frozen
class Monitor:
    """A callback that looks for progress in a metric, and what came of it.

    Attributes:
        callback: its class.
        monitored: the metric, such as ``val_loss``.
        waits_for_rise: whether it takes a rise for progress; a fall, if not.
        values: of the metric, by epoch; empty if it was never there.
        stopped_after: epochs after which it ended the training; None if it did not.
        restored: the epoch, counted from 1, whose weights it restored in the end; None if it did not.
        trainer: whether these are the arguments of a Trainer, and no callback.
        by_hand: whether the direction was given, and not found by Keras from the name.
        least_gain: smaller gains do not count as progress.
    """

    callback: str
    monitored: str
    waits_for_rise: bool
    values: tuple[float, ...] = ()
    stopped_after: int | None = None
    restored: int | None = None
    trainer: bool = False
    by_hand: bool = True
    least_gain: float = 0.0


@frozen
class MonitorFacts:
    """The callbacks of one training that look for progress."""

    described: ClassVar[str] = "the callbacks that look for progress"

    monitors: tuple[Monitor, ...]

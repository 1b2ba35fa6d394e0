"""What the layers of a model did: on one batch that was examined, or in the sampled steps of a watched run.

As in `facts.training`, what is not known of a single step is NaN in an array, unless the field says otherwise.
"""

from __future__ import annotations

from typing import ClassVar

from diagnostics.facts.frozen import frozen

from .array import Array


@frozen
class ActivationFacts:
    """One layer's output on the batch, seen at the layer of its activation function.

    Attributes:
        layer: name.
        function: ``relu``, ``tanh``, ``sigmoid``, …
        units: size of the channel or feature axis.
        dead: how many of these units are zero for every example and position.
        saturated: how many of them lie within 1% of a bound of the function (of its range) in at least 95% of the
            examples and positions.
    """

    layer: str
    function: str
    units: int
    dead: int
    saturated: int


@frozen
class LayerFacts:
    """The activations of all layers that could be seen, in order of execution."""

    described: ClassVar[str] = "the activations of a batch"

    activations: tuple[ActivationFacts, ...]


INPUT_OF = "input of "


@frozen
class LayerActivity:
    """One activation layer in the forward passes of the steps looked at more closely; the k latest ones.

    Attributes:
        layer: path of the module; of a ReLU that is no module, `INPUT_OF` and the path of the layer that it feeds.
        function: ``relu``, ``tanh``, ``sigmoid``, …
        hidden: whether a layer with weights ran after it in one of these passes; the one that makes the
            prediction is not followed by any.
        steps: integers (k,), rising.
        units: integers (k,), size of the channel or feature axis.
        examples: integers (k,), in the batch.
        dead: integers (k,), units that were zero for every example and position.
        saturated: integers (k,), units that lay at a bound of the function; see `ActivationFacts`.
    """

    layer: str
    function: str
    hidden: bool
    steps: Array
    units: Array
    examples: Array
    dead: Array
    saturated: Array


@frozen
class ActivityFacts:
    """The activation layers that could be seen, in the order in which the model defines them."""

    described: ClassVar[str] = "the activation layers"

    layers: tuple[LayerActivity, ...]


@frozen
class RangeFacts:
    """How large the activations became, by module, in the forward passes of the steps looked at more closely.

    Attributes:
        modules: paths, in order of execution; only modules without children, and the names of what the model shows
            by `diagnostics.probe`.
        dtypes: of each module's output: ``float32``, ``float16``, ``bfloat16``, …
        limits: float64 (modules,), the largest finite value of that dtype.
        highest: float64 (modules,), largest absolute value seen in its outputs; inf or NaN if it was.
        highest_steps: integers (modules,), the step at which `highest` was seen.
        steps: integers (k,), the steps looked at.
        nearest: float64 (modules,), for float16 the largest absolute value seen in its outputs that is less than
            the limit, so that a mask's -inf or least number does not count; NaN for other dtypes.
        nearest_steps: integers (modules,), the step at which `nearest` was seen.
        finite: float64 (modules,), for every dtype the largest absolute value in the passes in which the output
            was finite: what a module did before all became NaN; NaN if there was none.
        finite_steps: integers (modules,), the step at which `finite` was seen.
    """

    described: ClassVar[str] = "the ranges of the activations"

    modules: tuple[str, ...]
    dtypes: tuple[str, ...]
    limits: Array
    highest: Array
    highest_steps: Array
    steps: Array
    nearest: Array | None = None
    nearest_steps: Array | None = None
    finite: Array | None = None
    finite_steps: Array | None = None


@frozen
class TrainModeFacts:
    """The mode of the layers that behave differently in training, at the backward passes of k steps looked at.

    Attributes:
        layers: names of these layers, dropout and batch norm, in the parts of the model that are trained.
        keeps_statistics: for each, whether it changes a state of its own in a pass in training mode: batch norm.
        steps: integers (k,), rising.
        in_training: integers (k,), how many of the layers were in training mode.
        sources: integers (k,), equal where the latest batch of a loader came from the same dataset, 0 where there
            was none; None if not known.
    """

    described: ClassVar[str] = "the mode of the layers"

    layers: tuple[str, ...]
    keeps_statistics: tuple[bool, ...]
    steps: Array
    in_training: Array
    sources: Array | None = None


@frozen
class BatchNormSingleRow:
    """A model that in training mode gives any single row the same answer, and is trained on single rows.

    Attributes:
        layers: its layers of batch norm.
    """

    described: ClassVar[str] = "a model with batch norm that is trained on single rows"

    layers: tuple[str, ...]


@frozen
class NeverInTraining:
    """Layers that behave differently in training, and that no call in training mode has ever reached.

    Attributes:
        layers: names of all such layers of the model, dropout and batch norm: none of them was reached.
        steps: of the optimizer.
    """

    described: ClassVar[str] = "the state of the layers that depend on the mode"

    layers: tuple[str, ...]
    steps: int


@frozen
class EqualUnitsFacts:
    """Which weights started with equal units, changed in training, and have equal units still.

    Attributes:
        weights: their names; empty if there are none.
    """

    described: ClassVar[str] = "the units of the layers at the start and now"

    weights: tuple[str, ...]


@frozen
class UnderflowFacts:
    """How the gradients of a model that computes in float16 are rounded; the k latest steps looked at.

    Attributes:
        layers: names, as in `GradientHistory`.
        steps: integers (k,), rising.
        least: float64 (k, layers), the least absolute value of the gradient that is not 0; NaN where the layer
            got none, or too few numbers to say.
        at_least: float64 (k, layers), how many of its numbers that are not 0 are exactly that, from 0 to 1.
        zero_shares: float64 (k, layers), how many of its numbers are 0, from 0 to 1; NaN where it got none.
    """

    described: ClassVar[str] = "a model that computes in float16"

    layers: tuple[str, ...]
    steps: Array
    least: Array
    at_least: Array
    zero_shares: Array


PARTS = 16
"""Parts that a sequence is divided into, to say how far back in it the gradient reaches."""


@frozen
class RecurrentLayer:
    """How the gradient of the loss is spread over the positions of a recurrent layer's input.

    Attributes:
        module: path of the layer.
        kind: class name: ``RNN``, ``LSTM``, ``GRU``.
        steps: integers (k,), the steps looked at, rising; the latest ones.
        lengths: integers (k,), positions in the sequences of that step.
        profiles: float32 (k, PARTS), the largest absolute value of the gradient in each sixteenth of the sequence,
            its beginning first.
    """

    module: str
    kind: str
    steps: Array
    lengths: Array
    profiles: Array


@frozen
class RecurrenceFacts:
    """The recurrent layers of the model that were given sequences of at least `PARTS` positions."""

    described: ClassVar[str] = "a recurrent layer"

    layers: tuple[RecurrentLayer, ...]


@frozen
class ForgottenLayer:
    """A layer that was called on what a model computes, and whose result nobody uses.

    Attributes:
        name: of the layer.
        kind: its class.
        scalars: trainable, in its weights.
        called_on: the layers whose results it was given.
        like_an_output: whether what follows from it ends in the shape of an output of the model, as the one of an
            earlier model does.
    """

    name: str
    kind: str
    scalars: int
    called_on: str
    like_an_output: bool


@frozen
class ForgottenLayers:
    """Layers with weights that are part of no model."""

    described: ClassVar[str] = "the layers that were called on what the model computes"

    layers: tuple[ForgottenLayer, ...]


@frozen
class StillStatistics:
    """Layers of Keras' batch norm that were trained, and by their momentum of 1 keep their first statistics.

    Attributes:
        layers: names.
        steps: of the optimizer.
    """

    described: ClassVar[str] = "a layer of batch norm whose statistics cannot move"

    layers: tuple[str, ...]
    steps: int


@frozen
class BatchNormFacts:
    """The layers of batch norm that have counted batches in training mode, and keep running statistics.

    Attributes:
        layers: names.
        momentums: float64 (layers,), the weight of the latest batch in the statistics; NaN for a mean of all.
        untouched: bool (layers,), whether the statistics are still those that a layer is made with, mean 0 and
            variance 1.
    """

    described: ClassVar[str] = "a layer of batch norm, trained"

    layers: tuple[str, ...]
    momentums: Array
    untouched: Array


@frozen
class RoundingFacts:
    """A sample of the weights in half precision that an optimizer of the framework's own steps on.

    Attributes:
        dtype: ``bfloat16`` or ``float16``.
        optimizer: class name.
        layers: that the weights belong to.
        first_step: whose weights are compared with all later ones.
        last_step: the latest that was looked at.
        samples: steps that were looked at.
        weights: float32 (n,), the values in the first of them.
        moved: bool (n,), whether the value was ever another one.
        with_gradient: integers (n,), in how many of the samples the gradient was not 0.
        gradients: float32 (n,), mean absolute gradient over the samples.
    """

    described: ClassVar[str] = "weights in half precision"

    dtype: str
    optimizer: str
    layers: tuple[str, ...]
    first_step: int
    last_step: int
    samples: int
    weights: Array
    moved: Array
    with_gradient: Array
    gradients: Array

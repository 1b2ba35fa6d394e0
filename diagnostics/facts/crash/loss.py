"""What is recognised in a crash of the loss, the metric or the backward pass."""

from __future__ import annotations

from diagnostics.facts.frozen import frozen


@frozen
class LossMissing:
    """The model returned no loss.

    Attributes:
        returned: names the model returned.
        received: names the model was given.
        unread: columns of the dataset that it was not given, without those of text.
    """

    returned: tuple[str, ...] = ()
    received: tuple[str, ...] = ()
    unread: tuple[str, ...] = ()


@frozen
class NoPathToParameters:
    """`backward` found nothing to differentiate.

    Attributes:
        adapters: whether a model that PEFT has given adapters was seen in the frames.
    """

    adapters: bool = False


@frozen
class LabelsInInputsCrash:
    """A loss was given, and no target apart from the inputs.

    Attributes:
        inputs: names in the input dict; None if not known, and then it is only likely that this is what happened.
        labels: the name among them that holds the labels; None if not known.
    """

    inputs: tuple[str, ...] | None = None
    labels: str | None = None


@frozen
class TargetMissing:
    """A loss was given, and no target, neither apart from the inputs nor among them.

    Attributes:
        inputs: names of the inputs; empty if they have none.
    """

    inputs: tuple[str, ...] = ()


@frozen
class ShapesDiffer:
    """Prediction and target have shapes that the loss cannot bring together.

    Attributes:
        prediction: shape, if known; None in it for a size that is open, as the batch's is in a graph.
        target: the same.
        wants_indices: whether the loss takes class indices and said that the target has an axis too many.
        rows: how many predictions and targets there are, where the message tells no more than that.
        sparse: whether it is Keras' sparse loss, which said that the target does not lack the last axis alone.
        asked: the target's shape that the loss asked for, and the one it got, with the classes along axis 1.
    """

    prediction: tuple[int | None, ...] | None = None
    target: tuple[int | None, ...] | None = None
    wants_indices: bool = False
    rows: tuple[int, int] | None = None
    sparse: bool = False
    asked: tuple[tuple[int, ...], tuple[int, ...]] | None = None


@frozen
class NotProbabilities:
    """A loss that takes the prediction for probabilities was given numbers that are none.

    Attributes:
        lowest: smallest prediction, if known; all are finite then.
        highest: largest prediction.
    """

    lowest: float | None = None
    highest: float | None = None

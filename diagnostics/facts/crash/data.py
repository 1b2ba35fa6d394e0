"""What is recognised in a crash of the data, of the model that was given it, of the loss or the backward pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from diagnostics.facts.array import Array
from diagnostics.facts.frozen import frozen
from diagnostics.facts.pipeline import OUTPUTS_SETTING


@frozen
class LabelBeyondOutputs:
    """The loss was asked for the output of a class that has none.

    Attributes:
        label: the offending label.
        labels: all labels of the batch, any shape.
        num_outputs: size of the class axis.
        ignore_index: label that the loss leaves out; None if it leaves out none.
        outputs_setting: how the number of outputs is set, with ``{}`` where the number goes.
        labels_from: where `labels` were read: ``this batch``, ``the rows of loader that were read``.
    """

    label: int | None = None
    labels: Array | None = None
    num_outputs: int | None = None
    ignore_index: int | None = None
    outputs_setting: str = OUTPUTS_SETTING
    labels_from: str = "this batch"


@frozen
class RaggedColumns:
    """Examples of different shapes could not be stacked.

    Attributes:
        lengths: lengths of the examples by column, for columns where they differ; empty if not known.
        clash: the two lengths that the message names.
        column: the column that the message names, where its lengths are not known.
        shapes: of two examples, if the message names them and they have several axes; images have three.
        is_open: whether the message is the same where a column holds text, None or nested lists.
    """

    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    clash: tuple[int, int] | None = None
    column: str | None = None
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    is_open: bool = False


@frozen
class TokenBeyondEmbedding:
    """An embedding was asked for a row that it does not have.

    Attributes:
        ids: the ids asked for, any shape.
        rows: rows of the embedding table.
        offending: the one id that the message names, where the others are not known.
    """

    ids: Array | None = None
    rows: int | None = None
    offending: int | None = None


@frozen
class TokensMissing:
    """A model or a collator of tokens was given no tokens.

    Attributes:
        received: the names that did arrive; None if not known.
        text_columns: those of the dataset's columns that hold strings; None if not known.
    """

    received: tuple[str, ...] | None = None
    text_columns: tuple[str, ...] | None = None


@frozen
class TextInInputs:
    """A model that computes with numbers was given strings, under whatever name.

    Attributes:
        columns: the inputs that hold strings; empty if they have no names or are not known.
        reads_tokens: whether the model is known to begin with token ids.
    """

    columns: tuple[str, ...] = ()
    reads_tokens: bool = False


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


DataSymptom = (
    LabelBeyondOutputs
    | RaggedColumns
    | TokenBeyondEmbedding
    | TokensMissing
    | TextInInputs
    | LossMissing
    | NoPathToParameters
    | LabelsInInputsCrash
    | TargetMissing
    | ShapesDiffer
    | NotProbabilities
)
"""What is recognised of data, loss and backward pass."""

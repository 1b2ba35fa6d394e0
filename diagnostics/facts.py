"""What the probes saw: plain numbers and NumPy arrays, and no framework.

A probe knows PyTorch or Keras and writes these; a rule knows only these. `None` in a field always means
"not known", never "nothing there": a rule that needs it is then not applicable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from .finding import Where

Array = npt.NDArray[Any]

LossKind = Literal["cross_entropy", "binary_cross_entropy", "mean_squared_error", "mean_absolute_error", "other"]

OUTPUTS_SETTING = "give the last layer {} outputs"

# --- before training ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ModelFacts:
    """The model as it was handed over, before anything ran.

    Attributes:
        name: class name.
        library: ``transformers``, ``torch`` or ``keras``: decides only the wording of a fix.
        num_parameters: scalars in all parameters.
        num_trainable: scalars in the parameters that ask for a gradient.
        input_names: the names that the model's call accepts; empty if it takes anything.
        embedding_rows: rows of the token embedding, so valid ids are ``0 .. embedding_rows - 1``.
        pad_token_id: the id that means padding.
        training: whether the model as a whole is in training mode; None where the training loop decides it.
        mode_dependent_layers: names of layers that behave differently in training: dropout, batch norm.
        outputs_setting: how the number of outputs is set, with ``{}`` where the number goes.
        computes_loss: whether the training loop takes the loss from what the model returns, as an unchanged
            ``Trainer`` does; None if not known.
    """

    name: str
    library: Literal["transformers", "torch", "keras"]
    num_parameters: int
    num_trainable: int
    input_names: tuple[str, ...] = ()
    embedding_rows: int | None = None
    pad_token_id: int | None = None
    training: bool | None = None
    mode_dependent_layers: tuple[str, ...] = ()
    outputs_setting: str = OUTPUTS_SETTING
    computes_loss: bool | None = None


@dataclass(frozen=True)
class DatasetFacts:
    """The training rows, before they are collated into batches. At most a few hundred are read.

    Attributes:
        size: number of rows; None if the dataset cannot tell.
        rows_read: how many rows were looked at.
        spread_out: whether those were taken from all over the dataset (False: the first ones).
        columns: the columns that reach the collator.
        dropped_columns: columns taken away before that, because the model does not accept them.
        text_columns: columns, kept or dropped, that hold strings.
        labels: integers (rows_read,), one class label a row; None if rows carry no such thing.
        label_names: what the classes are called, if the dataset says so.
        token_lengths: integers (rows_read,), tokens in each row without padding; None if there are no tokens.
        weighted_sampling: whether a sampler draws some rows more often than others.
    """

    size: int | None
    rows_read: int
    spread_out: bool = True
    columns: tuple[str, ...] = ()
    dropped_columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    labels: Array | None = None
    label_names: tuple[str, ...] | None = None
    token_lengths: Array | None = None
    weighted_sampling: bool = False


@dataclass(frozen=True)
class BatchFacts:
    """One batch as it enters the model.

    Attributes:
        size: number of examples.
        inputs: arrays (size, ...) by name; ``"0"``, ``"1"`` where the batch is a tuple. Half-precision floats
            are widened to float32.
        labels: array (size, ...), the training target; None if the batch has none.
        labels_name: what the target is called in the batch.
        ignore_index: the label that the loss leaves out; None if it leaves out none.
    """

    size: int
    inputs: Mapping[str, Array]
    labels: Array | None = None
    labels_name: str | None = None
    ignore_index: int | None = None

    @property
    def class_labels(self) -> Array | None:
        """Integers (n,): the labels that the loss looks at, flattened; None if they are not integers."""
        return class_labels(self.labels, self.ignore_index)

    @property
    def token_ids(self) -> Array | None:
        """Integers (size, length), or None if the batch holds no tokens."""
        return self.inputs.get("input_ids", self.inputs.get("token_ids"))

    @property
    def attention_mask(self) -> Array | None:
        """Array (size, length), 1 where there is a token, or None."""
        return self.inputs.get("attention_mask", self.inputs.get("padding_mask"))


@dataclass(frozen=True)
class OutputFacts:
    """What the model made of the batch, before the loss.

    Attributes:
        shape: of the prediction (logits, or the regression output).
        num_classes: size of the class axis where the labels are class indices; None where they are not.
        non_finite_rows: examples whose prediction holds NaN or inf.
    """

    shape: tuple[int, ...]
    num_classes: int | None
    non_finite_rows: tuple[int, ...] = ()


@dataclass(frozen=True)
class LossFacts:
    """The loss of the batch, and which loss it is.

    Attributes:
        value: the loss; may be NaN or inf.
        kind: recognised by computing it again from prediction and target; ``other`` if none matched.
        floor: the least loss that one constant answer for all examples of this batch could reach (for cross
            entropy the entropy of its labels, in nats); None for kind ``other``.
        class_weights: whether the loss weighs classes differently.
        non_finite_rows: examples whose own loss is NaN or inf, when `value` is; None if not known.
    """

    value: float
    kind: Literal["cross_entropy", "binary_cross_entropy", "mean_squared_error", "mean_absolute_error", "other"]
    floor: float | None = None
    class_weights: bool = False
    non_finite_rows: tuple[int, ...] | None = None


@dataclass(frozen=True)
class GradientFacts:
    """The gradient of the loss on one batch.

    Attributes:
        connected: whether any trainable parameter can be reached from the loss at all.
        norms: L2 norm of the gradient by parameter, for trainable parameters that got one.
        unreached: sizes, in scalars, by name of the trainable parameters that got none.
        num_trainable: scalars in all trainable parameters.
    """

    connected: bool
    norms: Mapping[str, float]
    unreached: Mapping[str, int]
    num_trainable: int


@dataclass(frozen=True)
class OptimizerFacts:
    """What the optimizer holds.

    Attributes:
        name: class name.
        learning_rates: one a parameter group.
        missing: sizes, in scalars, by name of trainable model parameters that it does not hold.
        held: number of the model's trainable parameters that it holds.
        foreign: number of tensors it holds that are no parameters of this model.
    """

    name: str
    learning_rates: tuple[float, ...]
    missing: Mapping[str, int]
    held: int
    foreign: int


@dataclass(frozen=True)
class OverfitFacts:
    """A copy of the model, trained on one batch over and over, with dropout off.

    Attributes:
        losses: the loss before each step, of the best of the runs tried.
        learning_rates: the rates tried, in order.
        distinct_inputs: number of examples in the batch that differ from each other.
        output_spread: standard deviation of the trained copy's prediction across examples, the largest over
            output units, divided by the predictions' root mean square. 0: the same answer to everything.
    """

    losses: tuple[float, ...]
    learning_rates: tuple[float, ...]
    distinct_inputs: int
    output_spread: float | None


@dataclass(frozen=True)
class MetricFacts:
    """The user's metric function, asked twice about predictions that are all correct.

    Attributes:
        on_logits: what it returned when every prediction was a row of logits, highest at the true class: what
            the evaluation loop hands over. None if it raised.
        on_classes: what it returned when every prediction was the true class itself. None if it raised.
        error: what it raised on logits.
    """

    on_logits: Mapping[str, float] | None
    on_classes: Mapping[str, float] | None
    error: str | None = None


# --- after a crash -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FrameFacts:
    """One line of a traceback.

    Attributes:
        yours: whether the file is the user's own, not an installed package or the standard library.
    """

    file: str
    line: int
    function: str
    code: str | None = None
    yours: bool = False


@dataclass(frozen=True)
class CrashFacts:
    """An exception, or the text of one.

    Attributes:
        frames: outermost first.
        live: whether the exception itself was at hand (its frames could be read), not only its text.
    """

    exception: str
    message: str
    frames: tuple[FrameFacts, ...]
    live: bool

    @property
    def first_line(self) -> str:
        """The first line of the message."""
        return next(iter(self.message.strip().splitlines()), "")

    @property
    def where(self) -> Where | None:
        """The innermost line that is the user's own."""
        for frame in reversed(self.frames):
            if frame.yours:
                return Where(frame.file, frame.line, frame.function)
        return None


@dataclass(frozen=True)
class LabelBeyondOutputs:
    """The loss was asked for the output of a class that has none.

    Attributes:
        label: the offending label.
        labels: all labels of the batch, any shape.
        num_outputs: size of the class axis.
        ignore_index: label that the loss leaves out; None if it leaves out none.
        outputs_setting: how the number of outputs is set, with ``{}`` where the number goes.
    """

    label: int | None = None
    labels: Array | None = None
    num_outputs: int | None = None
    ignore_index: int | None = None
    outputs_setting: str = OUTPUTS_SETTING


@dataclass(frozen=True)
class RaggedColumns:
    """Examples of different shapes could not be stacked.

    Attributes:
        lengths: lengths of the examples by column, for columns where they differ; empty if not known.
        clash: the two lengths that the message names.
    """

    lengths: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    clash: tuple[int, int] | None = None


@dataclass(frozen=True)
class TokenBeyondEmbedding:
    """An embedding was asked for a row that it does not have.

    Attributes:
        ids: the ids asked for, any shape.
        rows: rows of the embedding table.
    """

    ids: Array | None = None
    rows: int | None = None


@dataclass(frozen=True)
class TokensMissing:
    """A model or a collator of tokens was given no tokens.

    Attributes:
        received: the names that did arrive; None if not known.
        text_columns: those of the dataset's columns that hold strings; None if not known.
    """

    received: tuple[str, ...] | None = None
    text_columns: tuple[str, ...] | None = None


@dataclass(frozen=True)
class LossMissing:
    """The model returned no loss.

    Attributes:
        returned: names the model returned.
        received: names the model was given.
    """

    returned: tuple[str, ...] = ()
    received: tuple[str, ...] = ()


@dataclass(frozen=True)
class NoPathToParameters:
    """`backward` found nothing to differentiate."""


@dataclass(frozen=True)
class DevicesDiffer:
    """One operation was given tensors on several devices.

    Attributes:
        devices: as the framework names them.
        tensors: device by variable name, for tensors in the frame that failed.
    """

    devices: tuple[str, ...]
    tensors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class MetricGotLogits:
    """A metric of class labels was given continuous scores.

    Attributes:
        shape: of the scores, if known.
    """

    shape: tuple[int, ...] | None = None


Fact = (
    ModelFacts
    | DatasetFacts
    | BatchFacts
    | OutputFacts
    | LossFacts
    | GradientFacts
    | OptimizerFacts
    | OverfitFacts
    | MetricFacts
    | CrashFacts
    | LabelBeyondOutputs
    | RaggedColumns
    | TokenBeyondEmbedding
    | TokensMissing
    | LossMissing
    | NoPathToParameters
    | DevicesDiffer
    | MetricGotLogits
)


def class_labels(labels: Array | None, ignore_index: int | None = None) -> Array | None:
    """Flatten integer labels (any shape) to (n,), without the ignored ones; None if they are not integers."""
    if labels is None or not np.issubdtype(labels.dtype, np.integer):
        return None
    flat = labels.reshape(-1)
    return flat if ignore_index is None else flat[flat != ignore_index]

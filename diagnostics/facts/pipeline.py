"""Facts about a training pipeline: plain numbers and NumPy arrays, no framework.

A probe knows PyTorch or Keras and writes these; a rule knows only these. `None` in a field always means
"not known", never "nothing there": a rule that needs it is then not applicable.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen
from diagnostics.facts.loss_graph import LeafFacts

from .array import Array
from .calls import MonitorFacts
from .course import RowLedger
from .data import DataFact
from .dependence import DependenceFacts
from .inputs import (
    AdaptedElsewhere,
    AddedTokens,
    EndToken,
    EvaluationDraws,
    InputFacts,
    ScaledTwice,
    SwappedChannels,
    TargetSides,
    Vocabulary,
)
from .layers import LayerFacts, NeverInTraining, StillStatistics
from .loss_call import LossCalls
from .loss_contracts import LossKind, Reads
from .loss_graph import LossGraph
from .trials import MetricFacts, OverfitFacts, ReproductionFacts, SubsetTrial, TrialFacts
from .written import SettingFacts

OUTPUTS_SETTING = "give the last layer {} outputs"


@frozen
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
        adapters: whether its weights are frozen and small adapters beside them learn, as PEFT does.
        arguments: the class that a Trainer takes its settings by: ``TrainingArguments``, TRL's ``SFTConfig``; None
            without a Trainer. Decides only the wording of a fix.
        frozen_output: whether the last layer with weights is frozen; None if not known.
        scales_inputs: whether a layer is there to scale inputs, as Keras' Normalization and Rescaling are.
        is_own: whether its class is the user's; False for one that comes with transformers.
        from_checkpoint: whether `from_pretrained` has read it, by its configuration; parts of it may be new.
        lightning: whether it is a LightningModule.
        masked: id and number of rows of the only embedding that masks an id, or keeps its vector at 0.
    """

    described: ClassVar[str] = "the model"

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
    adapters: bool = False
    arguments: str | None = None
    frozen_output: bool | None = None
    scales_inputs: bool = False
    is_own: bool = True
    from_checkpoint: bool = False
    lightning: bool = False
    masked: tuple[int, int] | None = None

    @property
    def fix_libraries(self) -> tuple[str, ...]:
        """What a fix is worded for, the most special first."""
        special = {
            "peft": self.adapters,
            "trainer": self.arguments is not None,
            "lightning": self.lightning,
        }
        return (*(name for name, holds in special.items() if holds), self.library)


@frozen
class BatchFacts:
    """One batch as it enters the model.

    Attributes:
        size: number of examples.
        inputs: arrays (size, ...) by name; ``"0"``, ``"1"`` where the batch is a tuple. Half-precision floats
            are widened to float32.
        labels: array (size, ...), the training target; None if the batch has none.
        labels_name: what the target is called in the batch.
        ignore_index: the label that the loss leaves out; None if it leaves out none.
        vocabulary: that its texts were encoded with; None if it has none, or if that was not found.
        unread: columns of the dataset that are not in the batch, without those of text.
        first_words: of dicts in the script that number words from 0, the word with id 0, by the size of the dict.
    """

    described: ClassVar[str] = "a batch"

    size: int
    inputs: Mapping[str, Array]
    labels: Array | None = None
    labels_name: str | None = None
    ignore_index: int | None = None
    vocabulary: Vocabulary | None = None
    unread: tuple[str, ...] = ()
    first_words: Mapping[int, str] = field(default_factory=dict)

    @property
    def class_labels(self) -> Array | None:
        """Integers (n,): the labels that the loss looks at, flattened; None if they are not integers."""
        return class_labels(self.labels, self.ignore_index)

    @property
    def target_name(self) -> str:
        """What to call `labels` in a sentence: by their name; "target" where the batch is a tuple."""
        name = self.labels_name or "labels"
        return "target" if name.isdigit() else name

    @property
    def token_ids(self) -> Array | None:
        """Integers (size, length), or None if the batch holds no tokens."""
        return self.inputs.get("input_ids", self.inputs.get("token_ids"))

    @property
    def attention_mask(self) -> Array | None:
        """Array (size, length), 1 where there is a token, or None."""
        return self.inputs.get("attention_mask", self.inputs.get("padding_mask"))


@frozen
class OutputFacts:
    """What the model made of the batch, before the loss.

    Attributes:
        shape: of the prediction (logits, or the regression output).
        num_classes: how many classes the labels tell apart: the size of the class axis where they are class
            indices or one-hot, 2 where they are 0 and 1 for a single output; None where they name no classes.
        non_finite_rows: examples whose prediction holds NaN or inf.
        lowest: least value; None if there is no finite one.
        highest: largest value; None likewise.
        sums_to_one: whether the class axis of every example is non-negative and adds up to 1, as softmax makes
            it; None where there is no class axis.
        last_activation: what made the prediction: ``softmax``, ``sigmoid``, ``linear``, …; None if not known.
        applied_to: what made the numbers that the last activation was applied to, likewise.
        indexed_labels: whether the labels are indices into `num_classes` outputs.
        multiplied: whether the prediction is known to be something times one factor above 1, as cosines are.
    """

    described: ClassVar[str] = "the model's output"

    shape: tuple[int, ...]
    num_classes: int | None
    non_finite_rows: tuple[int, ...] = ()
    lowest: float | None = None
    highest: float | None = None
    sums_to_one: bool | None = None
    last_activation: str | None = None
    applied_to: str | None = None
    indexed_labels: bool = True
    multiplied: bool = False

    @property
    def is_single(self) -> bool:
        """Whether the model gives one number for each example."""
        return bool(self.shape) and (len(self.shape) == 1 or self.shape[1:] == (1,))


@frozen
class LossFacts:
    """The loss of the batch, and which loss it is.

    Attributes:
        value: the loss; may be NaN or inf.
        kind: recognised by computing it again from prediction and target; ``other`` if none matched.
        constant_baseline_loss: the least loss that one constant prediction for this batch could reach
            (for cross entropy the entropy of its labels, in nats); None for kind ``other``.
        class_weights: whether the loss weighs classes differently; None if not known.
        weights: of the classes, as the loss was given them; None if there are none, or they are not known.
        reads: what the loss takes the prediction to be, where that is certain (by its settings, or because only
            that gives `value`); None otherwise.
        broadcast: whether `value` comes out only if prediction and target, of different shapes, are broadcast
            against each other.
        name: of the loss, as the user wrote it.
        non_finite_rows: examples whose own loss is NaN or inf, when `value` is; None if not known.
        accuracy: whether a metric counts the examples whose class is right; None if not known.
        masked: whether the loss leaves out or weighs positions by a mask or by sample weights, beside the batch's
            ignore index; None if not known.
        scaled: the loss of the same batch with its inputs at unit scale; None if it was not computed.
        evaluated: the loss of the same batch in evaluation mode; None if it was not computed.
    """

    described: ClassVar[str] = "the loss of a batch"

    value: float
    kind: LossKind
    constant_baseline_loss: float | None = None
    class_weights: bool | None = False
    reads: Reads | None = None
    broadcast: bool = False
    name: str | None = None
    non_finite_rows: tuple[int, ...] | None = None
    masked: bool | None = None
    accuracy: bool | None = None
    weights: tuple[float, ...] | None = None
    scaled: float | None = None
    evaluated: float | None = None


@frozen
class OutputPart:
    """One of several outputs of a model, with its target and its own loss.

    Attributes:
        name: of the output.
        batch: with this target alone, and no inputs.
        outputs: of this output.
        loss: of this output, by its settings; its value is not known (NaN).
    """

    name: str
    batch: BatchFacts
    outputs: OutputFacts
    loss: LossFacts


@frozen
class SeveralOutputs:
    """The outputs of a model that has several, one by one; those without a target or a loss are left out."""

    described: ClassVar[str] = "several outputs"

    parts: tuple[OutputPart, ...]


@frozen
class GradientFacts:
    """The gradient of the loss on one batch.

    Attributes:
        connected: whether any trainable parameter can be reached from the loss at all.
        norms: L2 norm of the gradient by parameter, for trainable parameters that got one.
        unreached: sizes, in scalars, by name of the trainable parameters that got none.
        num_trainable: scalars in all trainable parameters.
    """

    described: ClassVar[str] = "the gradients of a batch"

    connected: bool
    norms: Mapping[str, float]
    unreached: Mapping[str, int]
    num_trainable: int


@frozen
class OptimizerFacts:
    """What the optimizer holds.

    Attributes:
        name: class name.
        learning_rates: one a parameter group.
        missing: sizes, in scalars, by name of trainable model parameters that it does not hold.
        held: number of the model's trainable parameters that it holds.
        foreign: number of tensors it holds that are no parameters of this model.
        default_rate: the learning rate that this class has when none is given; None if it has none.
        frozen: number of this model's parameters that it holds and that require no gradient.
        unfrozen: how many of `missing` were frozen at the start, and have been given gradients since.
        full_rate: the largest rate of the schedule, as the peak of a cycle, or before any factor of it; None
        without one.
    """

    described: ClassVar[str] = "the optimizer"

    name: str
    learning_rates: tuple[float, ...]
    missing: Mapping[str, int]
    held: int
    foreign: int
    default_rate: float | None = None
    frozen: int = 0
    unfrozen: int = 0
    full_rate: float | None = None


Fact = (
    ModelFacts
    | LeafFacts
    | DataFact
    | RowLedger
    | InputFacts
    | EvaluationDraws
    | TargetSides
    | SettingFacts
    | NeverInTraining
    | StillStatistics
    | BatchFacts
    | SwappedChannels
    | AddedTokens
    | EndToken
    | AdaptedElsewhere
    | ScaledTwice
    | OutputFacts
    | LayerFacts
    | LossFacts
    | LossCalls
    | LossGraph
    | SeveralOutputs
    | GradientFacts
    | OptimizerFacts
    | OverfitFacts
    | TrialFacts
    | SubsetTrial
    | MetricFacts
    | MonitorFacts
    | ReproductionFacts
    | DependenceFacts
)
"""Whatever a stage of a pipeline may yield."""


def class_labels(labels: Array | None, ignore_index: int | None = None) -> Array | None:
    """Flatten integer labels (any shape) to (n,), without the ignored ones; None if they are not integers."""
    if labels is None or labels.dtype.kind not in "iu":
        return None
    flat = labels.reshape(-1)
    return flat if ignore_index is None else flat[flat != ignore_index]

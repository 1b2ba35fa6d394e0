"""What `watch` saw of a run: plain numbers and NumPy arrays, and no framework.

A part of the run of which nothing is known is absent: there are no facts of that type. What is not known of a
single step is NaN in an array of floats, -1 in an array of flags (int8), and 0 in one of sizes or fingerprints,
unless the field says otherwise. As in `facts.pipeline`, None means "not known". A step is one step of the
optimizer, counted from 0; a sampled step is one of those that are measured more closely.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final, Literal

from diagnostics.facts.array import Array
from diagnostics.facts.calls import ClipFacts, LoadedKeys, RestoreFacts, ScaledClipFacts, StepOrderFacts
from diagnostics.facts.frozen import frozen
from diagnostics.facts.inputs import DrawnInputs, InputFacts, TargetSides
from diagnostics.facts.layers import (
    ActivityFacts,
    BatchNormFacts,
    EqualUnitsFacts,
    RangeFacts,
    RecurrenceFacts,
    RoundingFacts,
    TrainModeFacts,
    UnderflowFacts,
)
from diagnostics.facts.nonfinite import FrameFacts, OriginFacts
from diagnostics.facts.where import Where
from diagnostics.facts.written import SettingFacts

OF_RECURRENT = " layer "
"""In the name of a layer: between a recurrent module and the number of its layer. No path has a space."""
EARLY: Final = 16
"""Steps at the beginning whose rows are hashed."""


@frozen
class StepHistory:
    """What the loop did in each step: n steps that were kept.

    All recent steps are kept, and older ones more and more thinly, so `steps` may have gaps; they grow evenly
    towards the beginning of the run.

    Attributes:
        total_steps: optimizer steps in the whole run, kept or not.
        steps: integers (n,), rising.
        learning_rates: float64 (n, groups) over the parameter groups of all optimizers.
        training_mode: int8 (n,), 1 if the model was in training mode in the forward pass of the step, else 0.
        passes: integers (n,), forward passes with gradients on that led to the step: 1, or the accumulation.
        gradients_zeroed: int8 (n,): 1 if the gradients were None or all zero at the start of a backward pass
            between the step before and this one, 0 if they were not at any of them.
        batch_fingerprints: uint64 (n,), equal for equal batches (the last pass of the step).
        batch_sizes: integers (n,), examples in that batch.
        steps_without_optimizer: times the loop called `Watch.step` after forward passes with gradients on while
            no optimizer had stepped since the last such call: the passes of an accumulation, skipped steps, or a
            step that was forgotten.
        skipped_steps: steps that a loss scaler is known to have left out because of an overflow.
    """

    described: ClassVar[str] = "the steps of a run"

    total_steps: int
    steps: Array
    learning_rates: Array
    training_mode: Array
    passes: Array
    gradients_zeroed: Array
    batch_fingerprints: Array
    batch_sizes: Array
    steps_without_optimizer: int = 0
    skipped_steps: int = 0


@frozen
class LossHistory:
    """The training losses: of the k kept steps whose loss the loop handed over.

    Attributes:
        steps: integers (k,), rising.
        values: float64 (k,), the loss handed to `Watch.step`, averaged over the passes of one step. NaN and inf
            are what the loss was: every step of this part is known.
    """

    described: ClassVar[str] = "the loss at each step"

    steps: Array
    values: Array


@frozen
class GradientHistory:
    """The gradients that the optimizer stepped on: of the k kept steps in which they could be measured.

    A layer is a module that holds trainable parameters of its own; of a recurrent module, each of its layers and
    directions is one.

    Attributes:
        layers: names, in the order in which the model defines them, which is mostly the order of execution.
        steps: integers (k,), rising.
        norms: float32 (k,), L2 norm of the gradient over all layers at the optimizer's step, as it steps on it:
            clipped if the loop clips, averaged or summed as the loop does. NaN or inf if a gradient is, or if its
            square passes float32.
        layer_norms: float32 (k, layers), the same by layer; 0 for a layer that got no gradient.
        scaled: whether the gradients were scaled by a loss scaler and could be brought back to their size.
        reached: bool (layers,), whether a layer ever got a gradient, be it 0: a path leads from the loss to it;
            None if not known.
    """

    described: ClassVar[str] = "the gradients of the steps"

    layers: tuple[str, ...]
    steps: Array
    norms: Array
    layer_norms: Array
    scaled: bool = False
    reached: Array | None = None


@frozen
class UpdateHistory:
    """How far a step moves the weights: of the m sampled steps, before and after which they were compared.

    Attributes:
        layers: names, as in `GradientHistory`.
        steps: integers (m,), rising.
        ratios: float32 (m, layers), |update| / |weight|, both L2 norms; exactly 0 where the step changed nothing,
            inf where the weight was all zero and is not any more, NaN for a layer that no optimizer holds (where
            none holds any, all layers are looked at), and throughout where several steps are taken at once.
        weight_norms: float32 (m, layers), L2, before the step; NaN for a layer that no optimizer holds.
    """

    described: ClassVar[str] = "steps with the weights compared before and after"

    layers: tuple[str, ...]
    steps: Array
    ratios: Array
    weight_norms: Array


@frozen
class MemoryHistory:
    """The memory in use at the m sampled steps.

    Attributes:
        steps: integers (m,), rising.
        in_use: float64 (m,), bytes held by tensors on the accelerator, or by the process if there is none.
        holder: which of the two.
    """

    described: ClassVar[str] = "readings of the memory"

    steps: Array
    in_use: Array
    holder: Literal["accelerator", "process"]


@frozen
class EvaluationHistory:
    """The evaluation losses that the loop handed over, or computed without gradients.

    Attributes:
        steps: integers (p,), the steps after which it did.
        losses: float64 (p,).
        saved_after: the steps after which the script took the weights, as the best ones or the latest.
    """

    described: ClassVar[str] = "the losses of evaluations"

    steps: Array
    losses: Array
    saved_after: frozenset[int] = frozenset()


@frozen
class NoGradHistory:
    """The forward passes with gradients off, as an evaluation makes them.

    Attributes:
        passes: how many there were.
        passes_in_training_mode: how many of those ran in training mode.
        rounds: after how many different steps there were such passes; an evaluation is one round, however many
            passes it has.
        examples: in the largest of those that ran in training mode; 0 not known.
        last_step: after how many steps the last round was made; -1 not known.
        last_passes: passes at the end of that round, all in the same mode.
        last_in_training_mode: whether these ran in training mode.
        repeated: whether some of those in training mode had the same input within a round, as where predictions
            are averaged over dropout; None if not known.
        repeated_in_evaluation: the same of the passes in evaluation mode.
        compared: early steps whose first pass with gradients was compared with the passes without them.
        same: of those, the steps in which one of the latter had the same input, as a reference has.
    """

    described: ClassVar[str] = "the forward passes without gradients"

    passes: int
    passes_in_training_mode: int
    rounds: int
    examples: int = 0
    last_step: int = -1
    last_passes: int = 0
    last_in_training_mode: bool = False
    repeated: bool | None = None
    repeated_in_evaluation: bool | None = None
    compared: int = 0
    same: int = 0


@frozen
class TrainingHistory:
    """A watched run so far, in parts; a part of which nothing is known is None.

    Rules take the parts, and not this.
    """

    steps: StepHistory
    losses: LossHistory | None = None
    gradients: GradientHistory | None = None
    updates: UpdateHistory | None = None
    memory: MemoryHistory | None = None
    evaluations: EvaluationHistory | None = None
    no_grad: NoGradHistory | None = None

    def parts(self) -> tuple[Any, ...]:
        """Return the parts that are known."""
        return tuple(part for part in vars(self).values() if part is not None)


@frozen
class TraceFacts:
    """Every module's call in the first forward pass of one step, as the run made it.

    Attributes:
        step: the step.
        frames: in the order in which the calls ended: a module after those within it.
    """

    step: int
    frames: tuple[FrameFacts, ...]


@frozen
class PredictionFacts:
    """What a classifier answered, and what was right: in m of the steps looked at, and in e evaluations.

    There where the model's output is one tensor of scores (examples, classes), or holds it as `logits`; a single
    score counts as two classes. At most 256 examples of a pass and 1,024 classes are counted. The labels are the
    ones that the model was called with, or the loop handed over; otherwise they are read off the gradient of the
    scores, which under cross entropy is negative at the label and nowhere else.

    Attributes:
        steps: integers (m,), rising; the first pass of the step is looked at.
        answers: integers (m, classes), how many of the examples got which class.
        labels: integers (m, classes), how many carry which label; 0 throughout where the labels are not known.
        right: integers (m,), examples whose answer is their label.
        cross_entropies: float64 (m,), of the scores with the labels, in nats, the mean over examples, unweighted;
            NaN where labels are not known.
        softmax_loss: whether the loss is known to take the scores for logits: its gradient adds up to 0 over the
            classes in every example. False: it is not, or not known.
        plain_loss: whether it is known to be cross entropy with one label an example, each counting the same, up
            to a constant factor.
        evaluation_steps: integers (e,), optimizer steps made before each series of passes without gradients.
        evaluation_answers: integers (e, classes), as `answers`, over a part of the passes if there are many.
        evaluation_labels: integers (e, classes), as `labels`.
        evaluation_right: integers (e,), examples whose label is known, and is the answer; None if not counted.
        evaluation_spread: float64 (e,), how far the shares of right answers in its single passes lie apart, in
            standard deviations beyond what chance does to shares that are equal; None if not counted.
        last_confusion: integers (classes, classes) of the latest evaluation with known labels: how many of the
            examples with a label (rows) got which answer; None if not counted, as for many classes.
    """

    described: ClassVar[str] = "the predictions of a classifier"

    steps: Array
    answers: Array
    labels: Array
    right: Array
    cross_entropies: Array
    softmax_loss: bool
    plain_loss: bool
    evaluation_steps: Array
    evaluation_answers: Array
    evaluation_labels: Array
    evaluation_right: Array | None = None
    evaluation_spread: Array | None = None
    last_confusion: Array | None = None


@frozen
class GraphFacts:
    """Whether the graphs of k forward passes are still held by somebody.

    Attributes:
        steps: integers (k,), rising: the steps whose first pass was looked at.
        alive: bool (k,), whether the graph of its output is there now. At the end of a step nothing needs it any
            more.
    """

    described: ClassVar[str] = "the graphs of the forward passes"

    steps: Array
    alive: Array


@frozen
class LabelWeightFacts:
    """What a label weighs in m sampled steps, each of which adds up the gradients of several backward passes.

    There where each of the passes differentiates one known loss of class indices, in which all labels that are not
    ignored weigh the same.

    Attributes:
        steps: integers (m,), rising.
        counts: by step, integers (passes,): the labels that the loss of the pass counts.
        weights: by step, float64 (passes,): the factor of a label's term in what is differentiated, all positive;
            a loss scaler's is included, which is the same in a whole step.
        where: the line that computes the loss; None if not known.
    """

    described: ClassVar[str] = "accumulated passes with losses of labels"

    steps: Array
    counts: tuple[Array, ...]
    weights: tuple[Array, ...]
    where: Where | None = None


WATCHED = (
    StepHistory,
    LossHistory,
    GradientHistory,
    UpdateHistory,
    MemoryHistory,
    EvaluationHistory,
    NoGradHistory,
    OriginFacts,
    PredictionFacts,
    DrawnInputs,
    InputFacts,
    TargetSides,
    TrainModeFacts,
    EqualUnitsFacts,
    GraphFacts,
    RangeFacts,
    ActivityFacts,
    UnderflowFacts,
    RecurrenceFacts,
    ClipFacts,
    LoadedKeys,
    ScaledClipFacts,
    RestoreFacts,
    RoundingFacts,
    StepOrderFacts,
    SettingFacts,
    BatchNormFacts,
    LabelWeightFacts,
)
"""What a watched run gives."""


@frozen
class StartFacts:
    """How a training began.

    Attributes:
        settings: plain values by name: of the optimizer, of the precision.
        seeds: of the frameworks' generators of random numbers; None for one that was not set.
        states: hashes of the states of Python's and NumPy's global generators, whose seeds cannot be read.
        weights: hashes by parameter, of some of its numbers; what is beyond a bound has one hash.
        rows: by step, the hash of each row of its batch, in order; the first rows of a large batch.
    """

    described: ClassVar[str] = "the start of the training"

    settings: Mapping[str, Any]
    seeds: Mapping[str, Any]
    states: Mapping[str, str]
    weights: Mapping[str, str]
    rows: Mapping[int, tuple[str, ...]]

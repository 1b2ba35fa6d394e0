"""Facts about the rows to train on, and how they are made into batches.

As in `facts.pipeline`, None always means "not known".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import ClassVar, Literal

from diagnostics.facts.frozen import frozen

from .array import Array
from .where import Where

Task = Literal["classification", "regression"]


@frozen
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
        label_values: integers, the labels that occur in the rows read, where each row has several, as a mask has;
            None if rows carry no such thing.
        label_names: what the classes are called, if the dataset says so.
        token_lengths: integers (rows_read,), tokens in each row without padding; None if there are no tokens.
        words: integers (rows_read,), words in the longest text of each row, separated by white space; None if the
            rows hold no text, or most of them the text of another.
        weighted_sampling: whether a sampler draws some rows more often than others; None if not known.
        sampling_weights: number of weights of PyTorch's WeightedRandomSampler; None without one.
        shuffled: whether training sees the rows in random order; None if not known.
        first_batches: class labels, each (batch_size,), of the first batches in the order in which training
            will see them; empty if the rows are shuffled or carry no class labels.
        distinct_rows: number of the rows read that differ from each other; None if they could not be compared.
        stored: whether the dataset is a container that keeps its rows, such as a list, so that no code of the
            script computes a row when it is read.
        removed_rows: how many rows of its table a filter or a selection removed; 0 if not known.
        removed_lengths: integers, tokens without padding in each of the removed rows that were read; None if there
            are no tokens.
        removed_labels: integers, labels that are not ignored in each of these.
    """

    described: ClassVar[str] = "the dataset"

    size: int | None
    rows_read: int
    spread_out: bool = True
    columns: tuple[str, ...] = ()
    dropped_columns: tuple[str, ...] = ()
    text_columns: tuple[str, ...] = ()
    labels: Array | None = None
    label_values: Array | None = None
    label_names: tuple[str, ...] | None = None
    token_lengths: Array | None = None
    words: Array | None = None
    weighted_sampling: bool | None = False
    sampling_weights: int | None = None
    shuffled: bool | None = None
    first_batches: tuple[Array, ...] = ()
    distinct_rows: int | None = None
    stored: bool = False
    removed_rows: int = 0
    removed_lengths: Array | None = None
    removed_labels: Array | None = None


@frozen
class DatasetLength:
    """How long a dataset is whose rows were not read: its code could be noticed.

    Attributes:
        rows: its length.
        batch_size: rows that a batch is made of.
    """

    described: ClassVar[str] = "the length of the dataset"

    rows: int
    batch_size: int


@frozen
class SplitFacts:
    """Training and evaluation rows, compared with each other.

    Attributes:
        training_rows: number of training rows compared.
        training_size: number of training rows there are; None if not known.
        evaluation_rows: number of evaluation rows compared.
        evaluation_size: number of evaluation rows there are; None if not known.
        shared: how many of the evaluation rows compared also stand among the training rows compared.
        compared: the columns that had to agree; labels are left out.
        distinct_training_rows: how many of the training rows compared differ from each other; None if not known.
        possible_rows: how many different rows the values seen in these columns can form; None if too many to
            count, or where values hardly repeat.
        fractions: whether a row holds several numbers with fractions: two rows of measurements are never equal.
        overlapping: how many of the evaluation rows compared are windows of a series, large parts of which lie in
            the training rows compared, at other places of the window.
    """

    described: ClassVar[str] = "training and evaluation data"

    training_rows: int
    training_size: int | None
    evaluation_rows: int
    evaluation_size: int | None
    shared: int
    compared: tuple[str, ...]
    distinct_training_rows: int | None = None
    possible_rows: int | None = None
    fractions: bool = False
    overlapping: int = 0


NO_TOKEN = -1
"""In `TokenSides`: fills up a row that is shorter than others."""


@frozen
class TokenSides:
    """Tokens, or other ids, of some of the rows trained on and of some of the rows held out.

    Attributes:
        inputs: by name, those of training and those held out, integers (rows, length) each.
        training_size: number of rows trained on.
        held_out_size: number of rows held out.
        are_cut: whether the rows held out are known to follow the others in the same data: they are cut off it
            at one place, and not drawn from it.
    """

    described: ClassVar[str] = "tokens of the rows trained on and of those held out"

    inputs: Mapping[str, tuple[Array, Array]]
    training_size: int
    held_out_size: int
    are_cut: bool = False


@frozen
class RereadFacts:
    """The same rows made into a batch twice: by an untouched copy of the data pipeline, and by one used before.

    Every generator of random numbers that can be found was in the same state both times.

    Attributes:
        rows: number of rows read; None if the data hands out whole batches.
        first: arrays by name of the untouched copy's batch; tuples count from "0".
        again: the same of the copy that had read these rows once before; empty if that raised.
        raised: what the second reading raised, as type and message.
        culprit: ``collator`` if that changes the rows that it is given, else ``dataset``; None if the two agree.
        name: of the culprit: a function's name or a class.
        fresh_workers: whether training reads rows in processes that begin with a fresh copy in each epoch.
        unjudged: why the two could not be compared; everything else is then empty.
    """

    described: ClassVar[str] = "the data read a second time"

    rows: int | None = None
    first: Mapping[str, Array] = field(default_factory=dict)
    again: Mapping[str, Array] = field(default_factory=dict)
    raised: str | None = None
    culprit: Literal["collator", "dataset"] | None = None
    name: str | None = None
    fresh_workers: bool = False
    unjudged: str | None = None


@frozen
class HeldGenerator:
    """A generator of random numbers that the code of a dataset or collator draws from.

    Attributes:
        kind: as it is written: ``numpy.random.Generator``.
        holder: class whose attribute it is; empty for a global, or a variable of an enclosing function.
        name: of the attribute or variable.
        drawn_in: the method or function that draws from it: ``Photos.__getitem__``.
    """

    kind: str
    holder: str
    name: str
    drawn_in: str


@frozen
class WorkerFacts:
    """The worker processes of the training loader, and the generators that are copied into each of them.

    A generator counts only if nothing is seen to seed it again in the worker.

    Attributes:
        workers: number of processes.
        persistent: whether they stay from one epoch to the next; else each epoch begins with new copies.
        generators: those of dataset and collator.
        same_seed: the generator that `worker_init_fn` seeds with one number in every worker, such as
            ``numpy.random``, if rows are drawn from it; empty otherwise.
    """

    described: ClassVar[str] = "a loader with worker processes"

    workers: int
    persistent: bool
    generators: tuple[HeldGenerator, ...] = ()
    same_seed: str = ""


@frozen
class FrozenDraws:
    """Random numbers that Python code drew while TensorFlow traced it, and that each run of the graph repeats.

    Attributes:
        where: the line that names the generator.
        generator: such as ``numpy.random``.
        runs_for: what runs the graph: a ``call`` of the function, or an ``element`` of a dataset.
        runs: calls that followed and drew nothing, or elements; None if their number is not known.
    """

    described: ClassVar[str] = "random numbers drawn while a function was traced"

    where: Where
    generator: str
    runs_for: Literal["call", "element"]
    runs: int | None


@frozen
class RowOrder:
    """The labels of all rows given to a training, in their order.

    Attributes:
        labels: integers (rows,).
        held_out: rows at the end that are kept for validation before any shuffling; 0 if none are.
        shuffled: whether training draws the others in random order.
        batch_size: rows in a batch.
    """

    described: ClassVar[str] = "the labels in the order of their rows"

    labels: Array
    held_out: int
    shuffled: bool
    batch_size: int


@frozen
class ShuffledSplit:
    """Training and validation are cut from one `tf.data` shuffle, which draws another order for each iteration.

    Attributes:
        training: the cut that training begins with after the shuffle: ``skip`` or ``take``.
        validation: the other one.
    """

    described: ClassVar[str] = "a split of one shuffled dataset"

    training: str
    validation: str


@frozen
class HeldOutBefore:
    """Evaluations of a model on rows that its latest training leaves out, and that earlier ones had.

    Only where nothing has set its weights back in between, and where the trainings share rows.

    Attributes:
        trainings: before the latest of these evaluations.
        evaluations: of this kind, after different trainings.
        rows: of the latest.
        seen: of these rows, in earlier trainings.
    """

    described: ClassVar[str] = "several trainings of one model"

    trainings: int
    evaluations: int
    rows: int
    seen: int


@frozen
class FitData:
    """The object that a `fit` trains on.

    Attributes:
        kind: its class.
        validates: whether it is the validation data, too.
        hook: a method of it that is named like a hook, and that neither Keras nor the script calls.
        hooks: that Keras calls.
        where: the line that defines the method.
    """

    described: ClassVar[str] = "training data of one object"

    kind: str
    validates: bool = False
    hook: str = ""
    hooks: tuple[str, ...] = ()
    where: Where | None = None


@frozen
class ShuffledPredictions:
    """Predictions of a dataset that is reshuffled for each iteration, of which the script also made one itself.

    Attributes:
        passes: iterations of the script's own, at least.
        sequence: the class of one that draws rows in an order of its own, where the script compares with the
            labels that it was made of; empty otherwise.
    """

    described: ClassVar[str] = "predictions of a shuffled dataset"

    passes: int = 1
    sequence: str = ""


@frozen
class SampleWeights:
    """What examples weigh in the loss, in batches from all over a run.

    Attributes:
        batches: looked at.
        blank: how many of these hold weights of 0 only, so that their loss is 0 whatever the model answers.
        rows: in these batches.
        zero_rows: how many of these weigh 0 in every output.
        by_label: of each class, its rows and how many of them weigh 0; empty where a row has no single class.
    """

    described: ClassVar[str] = "the sample weights of the batches"

    batches: int
    blank: int
    rows: int
    zero_rows: int
    by_label: Mapping[int, tuple[int, int]] = field(default_factory=dict)


@frozen
class Baseline:
    """One simple answer.

    Attributes:
        name: ``chance``, ``constant`` or ``linear``.
        score: on the rows to score; None if it could not be had.
        detail: what it answers, or why there is no score.
        margin: two standard errors of the score, from the number of rows alone; None if not known.
    """

    name: Literal["chance", "constant", "linear"]
    score: float | None
    detail: str
    margin: float | None = None


@frozen
class BaselineFacts:
    """All baselines of one data set.

    Attributes:
        task: what was predicted.
        metric: what the scores are.
        higher_is_better: whether a larger score is better.
        baselines: in the order chance, constant, linear.
        fitted_rows: that constant and linear were fitted on.
        scored_rows: that all were scored on.
        held_out: whether the rows to score were cut off from the same data; otherwise they were given.
        classes: number of classes among the rows fitted on; None of a regression.
        notes: what a reader has to know about rows or targets.
    """

    task: Task
    metric: str
    higher_is_better: bool
    baselines: tuple[Baseline, ...]
    fitted_rows: int
    scored_rows: int
    held_out: bool
    classes: int | None = None
    notes: tuple[str, ...] = ()


@frozen
class OrientedPairs:
    """Images with masks, boxes or points, as far as it is known whether both are flipped or rotated alike.

    Two readings of a row are compared where one image is the other one flipped or rotated, and the masks, too.

    Attributes:
        rows: that were read several times; with `fits`, those of batches whose target is not blank.
        compared: pairs of readings; 0 where rows were not read again.
        apart: of these, pairs in which no single flip or rotation explains both the image and the mask.
        images_moved: pairs whose images differ.
        masks_moved: pairs whose masks differ.
        kind: of the targets in batches.
        fits: rows of batches that fit clearly, by orientation of the target: as given, mirrored left to right,
            upside down, and both; where several fit alike, the one that most rows have. Empty if not known.
    """

    described: ClassVar[str] = "images with masks, boxes or points as targets"

    rows: int
    compared: int = 0
    apart: int = 0
    images_moved: int = 0
    masks_moved: int = 0
    kind: Literal["mask", "box", "points"] = "mask"
    fits: tuple[int, ...] = ()


@frozen
class RefittedEncoder:
    """An encoder that was fitted twice on a column of one name, and used both times.

    Attributes:
        kind: its class: of scikit-learn, or Keras' TextVectorization.
        column: the name; of a layer its own.
        values: how many different ones it knew after the first fit, and after the second.
        shared: values that it knew both times.
        moved: of these, how many got another code.
        first: the line of the first fit; None if it is not known.
        where: that of the second.
    """

    described: ClassVar[str] = "an encoder that was fitted twice"

    kind: str
    column: str
    values: tuple[int, int]
    shared: int
    moved: int
    first: Where | None
    where: Where | None


@frozen
class ScaledRows:
    """The rows that a scaler of scikit-learn made with one fit.

    Attributes:
        kind: its class.
        factor: float64 (columns,); the scaler turns x into x * factor + offset.
        offset: float64 (columns,).
        numbers: uint64 (rows,), of each row that it made; see `row_numbers`.
        where: the line of the fit; None if it is not known.
    """

    kind: str
    factor: Array
    offset: Array
    numbers: Array
    where: Where | None


@frozen
class ScalerFits:
    """The fits of all scalers of a script that made rows, in their order."""

    described: ClassVar[str] = "scalers that were fitted at least twice"

    fits: tuple[ScaledRows, ...]


def row_numbers(rows: Array) -> Array:
    """Return a number, uint64 (rows,), by which a row (rows, columns) is recognised, also as float32."""
    import numpy as np

    bits = np.ascontiguousarray(rows, np.float32).view(np.uint32).astype(np.uint64)
    odd = np.random.default_rng(0).integers(1, 2**63, bits.shape[1], np.uint64) | np.uint64(1)
    numbers: Array = (bits * odd).sum(axis=1, dtype=np.uint64)
    return numbers


DataFact = (
    DatasetFacts
    | DatasetLength
    | SplitFacts
    | TokenSides
    | WorkerFacts
    | RowOrder
    | RereadFacts
    | ShuffledSplit
    | ShuffledPredictions
    | OrientedPairs
)
"""What a stage of a pipeline may yield of its data."""

"""What a run reports about its predictions, and the predictions and targets themselves: plain arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from .array import Array
from .frozen import frozen
from .loss_contracts import Reads
from .where import Where

# Functions of scikit-learn, by what they compare with the targets.
OF_NUMBERS = (
    "mean_squared_error",
    "root_mean_squared_error",
    "mean_absolute_error",
    "median_absolute_error",
    "explained_variance_score",
    "r2_score",
)
OF_SCORES = ("roc_auc_score", "average_precision_score")
OF_CLASSES = ("accuracy_score", "f1_score", "precision_score", "recall_score", "jaccard_score")


@frozen
class MetricCall:
    """A call of a metric by the script, with what it was given.

    Attributes:
        metric: name of the function.
        truth: (n,), the targets; of many rows every second, third, ...
        answers: (n,), the predictions or scores.
        average: of several classes: ``binary``, ``macro``, ...; None for a metric that needs none, or where other
            options change its value.
        column: of the table that the answers were cut from; None if that is not known.
        columns: of this table.
        whole: whether all rows are here.
        where: the line of the script; None if it is not known.
        passes: calls of models without gradients since the call before from this line; None if not counted.
        step: steps that optimizers had made.
        outputs: (n, ...), what a model returned in the passes before, for as many rows; None if that is not known.
        batches: rows of each of these passes.
        pairs: integers (n, 2) each, tensors of the script with one pair for each row of class 1; the first ones.
    """

    metric: str
    truth: Array
    answers: Array
    average: str | None = None
    column: int | None = None
    columns: int | None = None
    whole: bool = True
    where: Where | None = None
    passes: int | None = None
    step: int = 0
    outputs: Array | None = None
    batches: tuple[int, ...] = ()
    pairs: tuple[Array, ...] = ()


@frozen
class Evaluation:
    """The predictions and targets of all rows of one evaluation, and what was reported about them.

    Attributes:
        outputs: (n, ...), as the model returned them: scores (n, ..., classes), one number or integers each.
        targets: (n, ...); negative class numbers are ignored.
        reported: metrics by name.
        loss: that was reported with them; None if there was none.
        batches: rows of each batch, in the order of the rows; empty if not known.
        reads: what the loss takes the outputs for; None if not known.
        causal: whether an output is compared with the next target by the loss, as in a causal language model.
        pad: the token that fills up rows; None if there is none.
        certain: whether the reported numbers are known to be about these outputs.
        where: the line that computed them; None if it is not known.
    """

    outputs: Array
    targets: Array
    reported: Mapping[str, float]
    loss: float | None = None
    batches: tuple[int, ...] = ()
    reads: Reads | None = None
    causal: bool = False
    pad: int | None = None
    certain: bool = True
    where: Where | None = None


@frozen
class MetricState:
    """A metric object that takes the mean of the samples it was given, as the script read it during a training.

    Attributes:
        name: of the object.
        kind: its class.
        counts: samples at each read; training steps are between two reads.
        totals: sums of the values of these samples.
        resets: after the first read.
        compares: whether it compares predictions with targets.
        trained: whether it also gets samples between training steps; None if not known.
        where: the line that read it; None if it is not known.
    """

    name: str
    kind: str
    counts: tuple[float, ...]
    totals: tuple[float, ...]
    resets: int = 0
    compares: bool = True
    trained: bool | None = None
    where: Where | None = None


@frozen
class MetricLedger:
    """What a run reports about its predictions.

    Attributes:
        calls: of metrics; for each metric and number of rows the last.
        series: the first calls from each line of the script, in order.
        evaluations: the latest that reported something, in order.
        reads: what the loss of the training takes the outputs for; None if not known.
        trained_spread: standard deviation of the targets of the training, if its loss is the squared error of one
            number; None otherwise.
        states: metric objects that were read repeatedly.
    """

    described: ClassVar[str] = "predictions and targets of a metric that the script reports"

    calls: tuple[MetricCall, ...] = ()
    series: tuple[tuple[MetricCall, ...], ...] = ()
    evaluations: tuple[Evaluation, ...] = ()
    reads: Reads | None = None
    trained_spread: float | None = None
    states: tuple[MetricState, ...] = ()

"""See `SortedByLabel`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts, RowOrder
from diagnostics.facts.pipeline import ModelFacts, OutputFacts
from diagnostics.facts.training import PredictionFacts, StepHistory
from diagnostics.text.join import listed

MIN_BATCHES = 3
MIN_LABELS = 8  # in a batch; eight labels of two equally common classes agree by chance once in 128 times
SHOWN = 8  # labels, in the message
LOOKS = 6  # sampled batches of a watched run
EACH = 20  # consecutive rows with the same label, on average, in sorted data
HELD_OUT = 8  # validation rows, at least
NEVER = 0.1  # of the validation rows, whose classes are not trained
HELD_OUT_ALONE = 1e-6  # probability in random order that a class is in the validation rows alone
HOLD_OUT = (
    "shuffle first: order = np.random.permutation(len(x)); x, y = x[order], y[order]",
    "split by label: sklearn.model_selection.train_test_split(x, y, stratify=y)",
)
CHANCE = 1e-3  # probability in random order above which batches of one class are not evidence


class SortedByLabel(Rule):
    """The rows are sorted by label and not shuffled, so each batch contains a single class.

    ## What it does
    Reads the labels of the first few batches in training order or, in a watched run, the labels of the training
    batches. The rule fires if several of these batches contain a single class even though the data has more
    classes, and nothing is known to shuffle the rows.

    ## Why it is bad
    If a batch contains a single class, its gradient pushes the model to predict that class for every input, until
    a batch of the next class undoes this. The loss is very low within a class but jumps at each class boundary.
    The final model is biased towards the last class.

    ## Example
    ```python
    dataset = ImageFolder("photos", transform=ToTensor())       # all cats, then all dogs
    loader = DataLoader(dataset, batch_size=32)
    ```

    ## Instead
    ```python
    dataset = ImageFolder("photos", transform=ToTensor())
    loader = DataLoader(dataset, batch_size=32, shuffle=True)
    ```

    In Keras, `model.fit` shuffles arrays by default, but not a `tf.data.Dataset`: write
    `dataset.shuffle(number_of_rows).batch(32)`, in that order.

    ## Thresholds
    At least 3 of the first few batches must contain only one class, with at least 8 labels in each batch. Given
    the class frequencies among the labels read, the probability that a random order produces at least as many
    one-class batches must be below 1 in 1000. If only the first labels were read and all are equal, the model must
    have at least three outputs.

    If arrays are passed to Keras, all labels are read, and runs of equal labels must be at least 20 rows long on
    average. If the runs are shorter, the rule compares the rows that `validation_split` holds out with the other
    rows: at least 10% of the held-out rows must have labels that do not occur in the other rows.

    In a watched run, each step must use exactly one batch, and at least 6 batches must be sampled. Most of these
    batches must contain a single class, but not all the same class, and the limit of 1 in 1000 also applies.

    ## Known problems
    Batches of one class may be intended: some losses for pairs or prototypes need them, and a time series may have
    to stay in order. A dataset with a shuffle buffer is assumed to be shuffled unless its buffer is known to be
    smaller than 10% of the rows.

    ## Sources
    The documentation for `torch.utils.data.DataLoader` (`shuffle`), `tf.data.Dataset.shuffle` (`buffer_size`) and
    `keras.Model.fit` (`shuffle`).
    """

    severity = "warning"
    causes = ("loss-oscillation", "constant-predictions", "not-learning")

    @check
    def from_dataset(self, dataset: DatasetFacts, model: ModelFacts) -> Finding | None:
        """Compare the first batches with the labels of all rows read."""
        pure = _batches_of_one_class(dataset)
        if pure is None:
            return None
        if dataset.labels is None or not dataset.labels.size:
            raise NotApplicable("needs a known number of classes")
        classes, counts = np.unique(dataset.labels, return_counts=True)
        if classes.size < 2:
            if dataset.spread_out:
                return None
            raise NotApplicable("needs labels from the whole dataset, or the model's outputs")
        if _by_luck(dataset, len(pure), counts / counts.sum()) >= CHANCE:
            return None
        return self._sorted(dataset, pure, int(classes.size), "the dataset has at least", model)

    @check
    def from_outputs(self, dataset: DatasetFacts, outputs: OutputFacts, model: ModelFacts) -> Finding | None:
        """Compare the first batches with the model's outputs if all known labels are equal."""
        pure = _batches_of_one_class(dataset)
        if pure is None or (
            dataset.labels is not None and (dataset.spread_out or np.unique(dataset.labels).size > 1)
        ):
            return None
        if outputs.num_classes is None:
            raise NotApplicable("needs a known number of classes")
        different = np.unique(np.concatenate(pure)).size
        if outputs.num_classes < 2 or (outputs.num_classes == 2 and different < 2):
            return None  # with two outputs, one class may simply be rare
        return self._sorted(dataset, pure, outputs.num_classes, "the model has", model)

    @check
    def from_answers(self, answers: PredictionFacts, steps: StepHistory, model: ModelFacts) -> Finding | None:
        """Compare each training batch with the labels of all of them together."""
        if (steps.passes > 1).any():
            # Adversarial training alternates batches of real and of generated examples.
            raise NotApplicable(
                "needs one forward pass per step: if a step has several passes, only the first is sampled"
            )
        sizes = answers.labels.sum(axis=1)
        counts = answers.labels[sizes >= MIN_LABELS]
        if len(counts) < LOOKS:
            raise NotApplicable(
                f"needs the class labels of {LOOKS} batches with at least {MIN_LABELS} labels each"
            )
        pure = counts[(counts > 0).sum(axis=1) == 1]
        classes = np.flatnonzero(counts.sum(axis=0))
        if len(pure) <= len(counts) / 2 or np.unique(pure.argmax(axis=1)).size < 2:
            return None
        shares = counts.sum(axis=0) / counts.sum()
        if _at_least(len(pure), len(counts), float((shares ** sizes[sizes >= MIN_LABELS].min()).sum())) >= CHANCE:
            return None
        each = _runs([int(row.argmax()) for row in pure])
        shown = ", then ".join(map(str, each[:SHOWN])) + (", …" if len(each) > SHOWN else "")
        every = len(pure) == len(counts)
        which = f"Each of the {len(counts)}" if every else f"{len(pure)} of the {len(counts)}"
        return self.found(
            f"{which} sampled training batches contain{'s' if every else ''} only one class (label {shown}), but "
            f"there are {classes.size} classes in all. The rows are sorted by label and not shuffled, so each "
            "step pulls the model towards one class, and later steps undo it.",
            fix=_fix(model),
            evidence={
                "batches_of_one_class": len(pure),
                "batches_looked_at": len(counts),
                "labels_of_these": each[:100],
                "num_classes": int(classes.size),
            },
        )

    @check
    def from_order(self, order: RowOrder, model: ModelFacts) -> Finding | None:
        """Compare the held-out rows with the others, or find batches of one class in unshuffled rows."""
        labels = order.labels
        classes = np.unique(labels)
        runs = 1 + int(np.count_nonzero(labels[1:] != labels[:-1]))
        kept = labels[: len(labels) - order.held_out]
        if len(classes) < 2 or runs > 2 * len(classes) or len(labels) < EACH * runs:
            return self._never_trained(labels[len(kept) :], kept)
        if order.held_out >= HELD_OUT:
            return self._held_out(labels[len(kept) :], kept)
        if order.shuffled or order.batch_size < MIN_LABELS:
            return None
        batches = [labels[start : start + order.batch_size] for start in range(0, len(labels), order.batch_size)]
        pure = [batch for batch in batches if (batch == batch[0]).all()]
        if len(pure) < MIN_BATCHES or 2 * len(pure) < len(batches):
            return None
        every = len(pure) == len(batches)
        which = "Each of the" if every else f"{len(pure)} of the"
        return self.found(
            f"{which} {len(batches)} batches of an epoch contain{'s' if every else ''} only one class: the "
            f"{len(labels):,} rows are sorted by label, and fit(shuffle=False) keeps that order. Each step pulls "
            f"the model towards one of the {len(classes)} classes, and later steps undo it.",
            fix="model.fit(x, y, shuffle=True)  # the default",
            evidence={"batches_of_one_class": len(pure), "batches": len(batches), "num_classes": len(classes)},
        )

    def _held_out(self, held: Array, kept: Array) -> Finding | None:
        theirs, ours = np.unique(held), np.unique(kept)
        if np.array_equal(theirs, ours):
            return None
        never = np.setdiff1d(theirs, ours)
        shown = listed(theirs, "or", most=SHOWN)
        why = (
            f"No row with label {listed(never, 'or', most=SHOWN)} is left to train on."
            if len(never)
            else f"The {len(kept):,} rows left to train on have {len(ours)} different labels."
        )
        return self.found(
            f"The rows are sorted by label, and validation_split holds out the last {len(held):,} of them before "
            f"any shuffling: the held-out rows all have label {shown}. {why}",
            fix=HOLD_OUT,
            evidence={
                "held_out": len(held),
                "labels_held_out": theirs.tolist()[:100],
                "never_trained": never.tolist()[:100],
            },
        )

    def _never_trained(self, held: Array, kept: Array) -> Finding | None:
        """Report classes that are in the rows held out alone, more often than any random order would have it."""
        theirs, counts = np.unique(held, return_counts=True)
        never = ~np.isin(theirs, kept)
        rows = int(counts[never].sum())
        if len(held) < HELD_OUT or rows < NEVER * len(held):
            return None
        # Each row of a class is held out with this probability; a class of few rows may be so by chance.
        share = len(held) / (len(held) + len(kept))
        if share ** int(counts[never].max()) * len(theirs) >= HELD_OUT_ALONE:
            return None
        shown = listed(theirs[never][np.argsort(-counts[never], kind="stable")], "or", most=SHOWN)
        return self.found(
            f"{rows:,} of the {len(held):,} rows that validation_split holds out have label {shown}, but none of "
            f"the {len(kept):,} rows left to train on has that label. validation_split holds out the last rows "
            "before any shuffling, and the labels are at least partly sorted.",
            fix=HOLD_OUT,
            evidence={
                "held_out": len(held),
                "never_trained": theirs[never].tolist()[:100],
                "rows_never_trained": rows,
            },
        )

    def _sorted(
        self, dataset: DatasetFacts, pure: list[Array], classes: int, whence: str, model: ModelFacts
    ) -> Finding:
        first = len(dataset.first_batches)
        every = len(pure) == first
        share = f"{'Each' if every else len(pure)} of the first {first}"
        each = [int(batch[0]) for batch in pure]
        return self.found(
            f"{share} batches contain{'s' if every else ''} only one class "
            f"(label {', then '.join(map(str, _runs(each)))}), but {whence} {classes} classes. The rows are "
            f"sorted by label and {_shuffle(dataset, model)}, so each step pulls the model towards one class, "
            "and later steps undo it.",
            fix=_fix(model),
            evidence={
                "batches_of_one_class": len(pure),
                "batches_looked_at": first,
                "batch_size": int(pure[0].size),
                "labels_of_these": each,
                "num_classes": classes,
            },
        )


def _batches_of_one_class(dataset: DatasetFacts) -> list[Array] | None:
    """Return the batches of one class; None if there are too few, or the rows are shuffled."""
    if dataset.shuffled:
        return None
    judged = _judged(dataset)
    if len(judged) < MIN_BATCHES:
        raise NotApplicable(
            f"needs the class labels of the first {MIN_BATCHES} batches with at least {MIN_LABELS} labels each"
        )
    pure = [batch for batch in judged if (batch == batch[0]).all()]
    return pure if len(pure) >= MIN_BATCHES else None


def _judged(dataset: DatasetFacts) -> list[Array]:
    return [batch for batch in dataset.first_batches if batch.size >= MIN_LABELS]


def _by_luck(dataset: DatasetFacts, pure: int, shares: Array) -> float:
    """Return the probability that at least this many batches have one class in random order."""
    judged = _judged(dataset)
    return _at_least(pure, len(judged), float((shares ** min(batch.size for batch in judged)).sum()))


def _at_least(successes: int, trials: int, chance: float) -> float:
    """Return the probability of at least this many successes."""
    return sum(
        math.comb(trials, count) * chance**count * (1 - chance) ** (trials - count)
        for count in range(successes, trials + 1)
    )


def _fix(model: ModelFacts) -> Fix:
    if model.library == "keras":
        return (
            "call dataset.shuffle(number_of_rows) before .batch(...), so that rows are shuffled, not batches",
            "pass arrays to model.fit, which shuffles them itself",
        )
    return "DataLoader(dataset, batch_size=..., shuffle=True)"


def _shuffle(dataset: DatasetFacts, model: ModelFacts) -> str:
    if model.library == "keras" and dataset.shuffled is False:
        return "shuffled with too small a buffer"
    return "not shuffled"


def _runs(labels: list[int]) -> list[int]:
    """Drop repetitions: 0, 0, 0, 1 becomes 0, 1."""
    return [label for place, label in enumerate(labels) if not place or label != labels[place - 1]]

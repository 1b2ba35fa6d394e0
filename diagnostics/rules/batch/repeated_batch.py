"""See `RepeatedBatch`."""

from __future__ import annotations

import math

import numpy as np

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.array import Array
from diagnostics.facts.course import RowLedger, Verdicts
from diagnostics.facts.data import DatasetFacts, DatasetLength, FitData
from diagnostics.facts.loss_graph import LEAF, LossGraph, Node
from diagnostics.facts.pipeline import BatchFacts, ModelFacts
from diagnostics.facts.training import StepHistory
from diagnostics.text.join import count_of, listed

MIN_ROWS = 8  # all identical: fewer rows may be an experiment
MANY_ROWS = 64
MAX_DISTINCT = 0.05  # distinct rows among many read
BATCHES = 4  # rows read, at least, in batches
DRAWN = 1 / 8  # of the rows checked, and of the dataset's distinct rows: distinct rows that were drawn
STEPS = 20  # in a watched run, all with the same batch
LENGTH = 4  # tokens of a row that are checked
WIDE = 16  # scalars in a row: narrow rows repeat by nature
BY_NUMBER = ("Index", "IndexSelect", "GatherV2")  # operations that look up rows
OF_WEIGHTS = ("ReadVariableOp", "Identity", "Cast")  # a table of weights: few of its rows are read in a step
OF_SHAPES = ("Shape", "Rank", "Size")  # operations of TensorFlow that read no values

GENERATED = (
    "Usually the cause is a generator that yields the same batch over and over, or a __getitem__ that uses only "
    "part of its index.",
    "print the inputs of the first two batches, and make the generator or __getitem__ advance to the next rows",
)
STORED = (
    "The repeats are in the dataset itself: none of your code computes a row when it is read.",
    "print a few rows of the dataset, and check that it is meant to repeat them",
)


class RepeatedBatch(Rule):
    """Every step trains on the same rows.

    ## What it does
    Reads training rows and counts those with distinct inputs. In a watched run, it also compares the batches used
    in different steps, and counts how many rows of the predictions the first loss uses. For a Keras `PyDataset`,
    it checks whether the hooks that should change the rows between epochs are ever called.

    ## Why it is bad
    The dataset claims to have many rows but returns the same row for every index, or a generator yields its first
    batch forever. The model memorises the same few rows: the training loss falls quickly to zero, and the model
    does not generalise.

    ## Example
    ```python
    class Reviews(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return self.tokens[0], self.labels[0]          # the index is never used
    ```

    ## Instead
    ```python
    class Reviews(torch.utils.data.Dataset):
        def __getitem__(self, index):
            return self.tokens[index], self.labels[index]
    ```

    ## Thresholds
    Any of these is enough:

    - At least 8 rows were read, and all are identical.
    - At least 64 rows (or 4 batches, if that is more) were read, and the distinct rows among them fit into one
      batch. Fewer than 5% of the rows read are distinct, or the distinct rows exactly fill one batch.
    - A watched run had at least 20 steps, all on the same batch. The finding is then a warning if the loader's
      dataset is known to have at least four times as many rows as the batch. Otherwise it is a note, because the
      dataset may fit into one batch.
    - At least 64 rows from the batches of a watched run were checked. The number of distinct rows among them is at
      most an eighth of the rows checked, and at most an eighth of the distinct rows in the dataset.
    - PyTorch's `WeightedRandomSampler` has fewer weights than the dataset has rows.
    - There are at least 8 predictions, and the first loss selects from them only with an integer index that has a
      0 or 1 for each prediction. Such a mask should be boolean: as an integer index, it selects only rows 0 and 1,
      again and again.
    - A `PyDataset` in the script has a method whose name begins with `on_` but is not that of a Keras hook, and
      the name appears nowhere else in the script. Usually, this method was meant to load other rows before each
      epoch.

    ## Known problems
    In a table with few columns, rows naturally repeat. The second threshold (64 rows) therefore applies only to
    rows of at least 16 values. A toy dataset that repeats a few sentences is reported, and so is a batch that is
    repeated on purpose, to see whether the model can memorise it. For a toy dataset, the finding is only a note if
    the dataset is a list, a `TensorDataset` or a Hugging Face dataset, because these store their rows. Repeated
    rows are missed if random augmentation changes them. With Keras, an integer mask is found only within a
    `tf.function`, and only if it is not one of the function's arguments.

    ## Sources
    The documentation for `torch.utils.data.Dataset` (`__getitem__`) and `keras.utils.PyDataset`; Andrej Karpathy,
    "A Recipe for Training Neural Networks" (2019), "become one with the data".
    """

    severity = "warning"
    causes = ("overfitting", "constant-predictions")

    @check
    def from_dataset(
        self, dataset: DatasetFacts, batch: BatchFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Check whether all rows read are the same."""
        distinct, rows = _counted(dataset)
        if distinct != 1:
            return None
        if (token := _only_token(batch, model)) is not None:
            return self._of_one_token(token, f"all {rows:,} training rows checked have the same inputs")
        return self.found(
            f"All {rows:,} training rows checked have the same inputs. Every step trains on the same "
            "example, and the model learns nothing about the rest of the dataset. Usually __getitem__ ignores its "
            "index, or a generator always yields the same row.",
            fix="return self.rows[index]  # in __getitem__: use its index",
            evidence={"distinct_rows": distinct, "rows_read": rows, "size": dataset.size},
        )

    @check
    def from_batch(
        self, dataset: DatasetFacts, batch: BatchFacts, model: ModelFacts | None = None
    ) -> Finding | None:
        """Check whether all rows read fit into one batch."""
        distinct, rows = _counted(dataset)
        if rows < max(MANY_ROWS, BATCHES * batch.size):
            raise NotApplicable(f"needs at least {MANY_ROWS} rows in at least {BATCHES} batches")
        if not 1 < distinct <= batch.size or not (distinct < MAX_DISTINCT * rows or distinct == batch.size):
            return None
        if (token := _only_token(batch, model)) is not None:
            return self._of_one_token(token, f"only {distinct} of the {rows:,} training rows checked are distinct")
        if not _rarely_repeat(batch):
            return None
        if model is not None and model.library == "keras" and dataset.spread_out and distinct != batch.size:
            return None  # all rows are in arrays and never generated: windows of a periodic series repeat
        why, fix = STORED if dataset.stored else GENERATED
        return self.found(
            f"The {rows:,} training rows checked have only {distinct} distinct inputs, and a batch has "
            f"{batch.size} examples: every batch contains the same few rows. {why}",
            fix=fix,
            severity="note" if dataset.stored else None,
            evidence={
                "distinct_rows": distinct,
                "rows_read": rows,
                "size": dataset.size,
                "batch_size": batch.size,
            },
        )

    @check
    def from_weights(self, dataset: DatasetFacts) -> Finding | None:
        """Compare the weights of a WeightedRandomSampler with the rows of the dataset."""
        weights, rows = dataset.sampling_weights, dataset.size
        if weights is None or rows is None:
            raise NotApplicable("needs a WeightedRandomSampler and a dataset with a length")
        if weights >= rows:
            return None
        return self.found(
            f"The WeightedRandomSampler has {count_of(weights, 'weight')} for {rows:,} rows, so it draws only the "
            f"first {count_of(weights, 'row')} of the dataset. It needs one weight per row, not one per class.",
            fix="WeightedRandomSampler(class_weights[labels], len(labels))  # a weight for each row",
            evidence={"weights": weights, "size": rows, "cause": "sampling weights"},
        )

    @check
    def from_history(self, steps: StepHistory) -> Finding | None:
        """Check whether every step had the same batch."""
        prints = steps.batch_fingerprints
        if (prints != 0).sum() < STEPS:
            raise NotApplicable(f"needs {STEPS} steps with recorded batches")
        if (steps.passes > 1).any():
            raise NotApplicable(
                "needs one forward pass per step: with gradient accumulation, only the last batch is compared"
            )
        if (prints != prints[0]).any():
            return None
        size = int(steps.batch_sizes[-1])
        of = f" of {size:,} examples" if size else ""
        return self.found(
            f"All {steps.total_steps:,} steps used the same batch{of}, in the same order. That is fine if the "
            "dataset is that small, or if you are testing whether the model can memorise a batch. Otherwise the "
            "model learns nothing about the other examples.",
            fix="for batch in loader: ...  # not next(iter(loader)), which always returns the first batch",
            evidence={"steps": steps.total_steps, "batch_size": size or None},
            severity="note",
        )

    @check
    def from_course(
        self,
        steps: StepHistory,
        dataset: DatasetFacts,
        verdicts: Verdicts,
        rows: RowLedger | None = None,
        batch: BatchFacts | None = None,
        model: ModelFacts | None = None,
    ) -> Finding | None:
        """Compare the rows of the batches with those of the dataset, when the run is over."""
        prints, size = steps.batch_fingerprints, int(steps.batch_sizes.max(initial=0))
        if dataset.size is None or not size:
            raise NotApplicable("needs the number of rows in the dataset and in a batch")
        if not verdicts.complete or not verdicts.trained_alone or (steps.passes > 1).any():
            raise NotApplicable("needs a run that was not interrupted, with one forward pass per step")
        if (prints != 0).sum() >= STEPS and (prints == prints[0]).all():
            if not _left_over(dataset, size):
                return None
            return self._of_batches(steps.total_steps, size, dataset.size, batch, model)
        if dataset.sampling_weights is not None and dataset.sampling_weights < dataset.size:
            return None  # see `from_weights`
        if rows is None or rows.drawn < MANY_ROWS or dataset.distinct_rows is None:
            raise NotApplicable(f"needs {MANY_ROWS} rows from the batches")
        if rows.distinct > DRAWN * min(rows.drawn, dataset.distinct_rows):
            return None
        if (token := _only_token(batch, model)) is not None:
            return self._of_one_token(
                token, f"only {rows.distinct:,} of the {rows.drawn:,} rows checked are distinct"
            )
        seen = f"Of the {rows.drawn:,} rows sampled from {rows.steps} batches, only {rows.distinct:,} are distinct"
        return self._of_the_dataset(seen, dataset.size, rows.distinct, batch)

    @check
    def from_length(
        self,
        steps: StepHistory,
        length: DatasetLength,
        verdicts: Verdicts,
        batch: BatchFacts | None = None,
        model: ModelFacts | None = None,
    ) -> Finding | None:
        """Compare a batch that every step used with the length of a dataset whose rows were not read.

        The length of a dataset that yields whole batches, such as all points of an image, says nothing.
        """
        prints, size = steps.batch_fingerprints, int(steps.batch_sizes.max(initial=0))
        if size != length.batch_size:
            raise NotApplicable("needs batches as large as the DataLoader's batch_size")
        if not verdicts.complete or not verdicts.trained_alone or (steps.passes > 1).any():
            raise NotApplicable("needs a run that was not interrupted, with one forward pass per step")
        if (prints != 0).sum() < STEPS or (prints != prints[0]).any() or length.rows < BATCHES * size:
            return None
        return self._of_batches(steps.total_steps, size, length.rows, batch, model)

    @check
    def from_hooks(self, data: FitData) -> Finding:
        """Report a hook that should change the rows between epochs, and is never called."""
        if not data.hook:
            raise NotApplicable("needs a PyDataset with a hook that Keras does not have")
        return self.found(
            f"Neither Keras nor the script calls {data.kind}.{data.hook}: the hooks of a PyDataset are "
            f"{listed(data.hooks)}. The rows, or whatever else this method should change between epochs, stay as "
            "they were in the first epoch, so the model never sees the rest.",
            fix=tuple(f"rename {data.hook} to {name}" for name in reversed(data.hooks)),
            evidence={"hook": data.hook, "hooks": list(data.hooks)},
            where=data.where,
        )

    @check
    def from_graph(self, graph: LossGraph) -> Finding | None:
        """Look for a mask of integers, which picks rows by number."""
        lookups = [node for node in graph.nodes if node.operation in BY_NUMBER and node.rows is not None]
        if not lookups:
            raise NotApplicable("needs a loss that looks up rows by index")
        masks = [node for node in lookups if _is_mask(node) and _is_only_reader(graph, node)]
        if not masks or (rows := masks[0].rows) is None or rows.times is None:
            return None
        zeros, ones = rows.times[0], rows.times[1]
        return self.found(
            f"The loss reads only 2 of the {rows.there:,} predictions: row 0 ({zeros:,} times) and row 1 "
            f"({count_of(ones, 'time')}). The predictions are indexed with {rows.read:,} integers that are 0 or "
            "1. That looks like a mask, but an integer index picks rows by their numbers; only a boolean mask "
            f"keeps the {count_of(ones, 'row')} marked with 1. The model learns from two examples.",
            fix={
                "torch": "use a boolean mask for predictions and labels: out[mask.bool()], labels[mask.bool()]",
                "keras": "use tf.boolean_mask(out, mask) instead of tf.gather(out, mask), for the labels too",
            },
            evidence={"rows": rows.there, "rows_read": 2, "times": [zeros, ones]},
        )

    def _of_batches(
        self, steps: int, size: int, rows: int, batch: BatchFacts | None, model: ModelFacts | None
    ) -> Finding:
        if (token := _only_token(batch, model)) is not None:
            return self._of_one_token(token, f"all {steps:,} batches are identical")
        seen = f"All {steps:,} steps used the same batch of {size:,} examples"
        return self._of_the_dataset(seen, rows, size, batch)

    def _of_one_token(self, token: int, seen: str) -> Finding:
        return self.found(
            f"Every token in a batch has id {token}, except for padding and tokens that occur only once per "
            f"row: {seen}. Different texts become identical like this when none of their words is in the "
            "vocabulary, so each word becomes the unknown token.",
            fix=(
                "build the vocabulary from the training texts, with the tokenization and lower-casing used to "
                "encode them",
                "print(tokenizer.decode(batch[0]))  # is anything left of the text?",
            ),
            evidence={"only_token": token},
        )

    def _of_the_dataset(self, seen: str, rows: int, distinct: int, batch: BatchFacts | None) -> Finding:
        """Blame what made the rows alike, if rows of one batch are; otherwise loop and sampler."""
        if batch is not None and (alike := _made_alike(batch)) is not None:
            return self.found(
                f"{seen}. The dataset has {rows:,} rows, but the {batch.size} rows of the first batch have only "
                f"{count_of(alike, 'distinct input')}, and rows with the same input have different labels. So the "
                "dataset, the tokenizer or the collator has made different rows identical.",
                fix=(
                    "print(dataset[0], dataset[1])  # do their inputs differ?",
                    "print(loader.collate_fn([dataset[0], dataset[1]]))  # do they still differ?",
                ),
                evidence={
                    "size": rows,
                    "distinct_rows_drawn": distinct,
                    "distinct_rows_in_batch": alike,
                    "batch_size": batch.size,
                },
            )
        return self.found(
            f"{seen}. The dataset has {rows:,} rows, but the model never sees the rest. Either you are testing "
            "whether the model can memorise a batch, or the loop or the sampler skips most of the data.",
            fix=(
                "for batch in loader: ...  # not next(iter(loader)), which always returns the first batch",
                "let the sampler yield every index: RandomSampler(dataset)",
            ),
            evidence={"size": rows, "distinct_rows_drawn": distinct},
        )


def _is_mask(node: Node) -> bool:
    """Return whether the index of a lookup has one value per row, and these are zeros and ones."""
    rows = node.rows
    if rows is None or rows.times is None or rows.read != rows.there or rows.there < MIN_ROWS:
        return False
    return rows.times.keys() == {0, 1}


def _is_only_reader(graph: LossGraph, mask: Node) -> bool:
    """Return whether the loss reads the tensor that a mask selects from, and no weights, by such masks alone."""
    if mask.operands[0].node is None:
        return False
    source = mask.operands[0].node
    if graph.nodes[graph.source(source, OF_WEIGHTS)].operation == LEAF:
        return False
    readers = [graph.nodes[reader] for reader in graph.readers[source]]
    return all(_is_mask(reader) or reader.operation in OF_SHAPES for reader in readers)


def _only_token(batch: BatchFacts | None, model: ModelFacts | None) -> int | None:
    """Return the id of all tokens in a batch except padding, start and end; None if there are several."""
    if batch is None:
        return None
    found = [values for values in batch.inputs.values() if values.dtype.kind == "i"]
    ids = batch.token_ids if batch.token_ids is not None else found[0] if len(found) == 1 else None
    if ids is None or ids.ndim != 2 or ids.shape[1] < LENGTH:
        return None
    padding = None if model is None else model.pad_token_id
    real = (
        ids != (0 if padding is None else padding) if batch.attention_mask is None else batch.attention_mask == 1
    )
    if not real.any():
        real = np.ones(ids.shape, bool)  # the supposed padding is all there is
    if ((real[:, 1:] != real[:, :-1]).sum(axis=1) > 1).any():
        return None  # not padding, which is at one end: the flags of a table
    several = [token for token in np.unique(ids[real]) if ((ids == token) & real).sum(axis=1).max() > 1]
    return int(several[0]) if len(several) == 1 else None


def _made_alike(batch: BatchFacts) -> int | None:
    """Return the number of distinct inputs in a batch, if they are few and equal ones have different labels.

    A sampler that draws a row repeatedly draws its label with it. None if they are many, or that is not known.
    """
    rows = batch.size
    parts = [values.reshape(rows, -1) for values in batch.inputs.values() if values.ndim and len(values) == rows]
    labels = batch.labels
    if rows < MIN_ROWS or not parts or labels is None or len(labels) != rows:
        return None
    inputs = [b"".join(np.ascontiguousarray(part[row]).tobytes() for part in parts) for row in range(rows)]
    pairs = {(given, np.ascontiguousarray(labels[row]).tobytes()) for row, given in enumerate(inputs)}
    distinct = len(set(inputs))
    return distinct if distinct <= max(1, DRAWN * rows) and len(pairs) > distinct else None


def _left_over(dataset: DatasetFacts, size: int) -> bool:
    """Return whether the dataset clearly has more distinct rows than one batch."""
    if dataset.size is None or not size or dataset.size < BATCHES * size:
        return False
    return dataset.distinct_rows is None or dataset.distinct_rows > min(2 * size, dataset.rows_read // 2)


def _counted(dataset: DatasetFacts) -> tuple[int, int]:
    if dataset.distinct_rows is None:
        raise NotApplicable("needs rows whose inputs can be compared")
    if dataset.rows_read < MIN_ROWS:
        raise NotApplicable(f"needs at least {MIN_ROWS} rows")
    return dataset.distinct_rows, dataset.rows_read


def _rarely_repeat(batch: BatchFacts) -> bool:
    """Return whether rows of this kind are usually all distinct."""
    return any(_varied(values, values is batch.token_ids) for values in batch.inputs.values())


def _varied(values: Array, tokens: bool) -> bool:
    if values.ndim < 2 or math.prod(values.shape[1:]) < WIDE:
        return False
    fractions = values.dtype.kind == "f" and bool((values != np.round(values)).any())
    return tokens or values.ndim > 2 or fractions

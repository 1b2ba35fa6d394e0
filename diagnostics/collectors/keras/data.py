"""Takes batches from Keras training data without advancing the user's iterators."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.shared.learnability import KeptRows
from diagnostics.collectors.shared.pipeline import CannotJudge, users_code
from diagnostics.collectors.shared.reread import Source, reread, seed_globals
from diagnostics.collectors.shared.split_overlap import TRAINING_ROWS
from diagnostics.facts.array import Array
from diagnostics.facts.data import DatasetFacts, RereadFacts
from diagnostics.facts.loss_contracts import LossKind

from .batch import BATCHES_READ, SECONDS_READING, SeenRows, as_array, named, unpack
from .internals import ExternalStatePolicy, dataset_ops
from .replayable import can_be_read, shuffles
from .state import global_states_kept

KEPT_ROWS, KEPT_BYTES, KEPT_SECONDS = 1024, 8 * 2**20, 0.5  # of the data, until the run is over
ARRAY_BATCH = 32  # `fit`'s batch size where none is given


class KerasData:
    """The batches of a `tf.data.Dataset`, a `keras.utils.PyDataset`, or of arrays ``(x, y)``.

    Args:
        data: one of these, or a list of batches.
        batch_size: of arrays, where the model takes no other; None for `fit`'s own.

    Attributes:
        size: rows; None if not known.
        shuffled: whether training sees the rows in random order; None if not known.
    """

    def __init__(self, data: Any, batch_size: int | None = None) -> None:
        self._data, self._batch_size = data, batch_size
        self.size: int | None = None
        self.shuffled: bool | None = None
        self.whole_rows_at_hand = False
        if isinstance(data, tf.data.Dataset):
            self._read_dataset(data)
        elif isinstance(data, keras.utils.PyDataset):
            self._read_sequence(data)
        elif isinstance(data, tuple) or is_array(data) or isinstance(data, Mapping):
            self._read_arrays(data)
        else:
            self._batches: Any = lambda: iter(data)

    def batches(self) -> Iterator[Any]:
        """Iterate from the start, apart from anyone else's iteration."""
        iterator: Iterator[Any] = self._batches()
        while True:
            with users_code():
                batch = next(iterator, None)
            if batch is None:
                return
            yield batch

    def _read_dataset(self, dataset: tf.data.Dataset) -> None:
        self.size, self.shuffled = rows_in(dataset), shuffles(dataset)
        # Rebuilding copies all tensors of the dataset; there is no need to where nothing keeps a state.
        twin = dataset if can_be_read(dataset) else private_dataset(dataset)
        self._batches = lambda: iter(twin)

    def _read_sequence(self, sequence: Any) -> None:
        count = sequence.num_batches

        def batches() -> Iterator[Any]:
            for index in range(count if count is not None else BATCHES_READ):
                yield sequence[index]

        self._batches = batches

    def _read_arrays(self, data: Any) -> None:
        self.shuffled = True  # `fit` shuffles arrays unless told otherwise
        self.whole_rows_at_hand = True
        rows = next((len(leaf) for leaf in keras.tree.flatten(data) if leaf is not None), 0)
        self.size = rows
        order = np.random.default_rng(0).permutation(rows)

        def batches() -> Iterator[Any]:
            step = self._batch_size or ARRAY_BATCH
            for start in range(0, rows - rows % step if self._batch_size else rows, step):
                chosen = order[start : start + step]
                yield keras.tree.map_structure(
                    lambda leaf, chosen=chosen: None if leaf is None else np.asarray(leaf)[chosen], data
                )

        self._batches = batches


def kind_of(data: Any) -> str:
    """Say what the data is: `a tf.data.Dataset`, `arrays`, `a list of batches`."""
    if isinstance(data, tf.data.Dataset):
        return "a tf.data.Dataset"
    if isinstance(data, keras.utils.PyDataset):
        return f"a PyDataset ({type(data).__name__})"
    return "a list of batches" if isinstance(data, list) else "arrays"


def is_array(value: Any) -> bool:
    """Whether this is a NumPy array or a TensorFlow tensor."""
    return isinstance(value, np.ndarray) or tf.is_tensor(value)


def private_dataset(dataset: tf.data.Dataset) -> tf.data.Dataset:
    """Rebuild a dataset from its graph, so that iterating it does not move the shuffling of the user's own.

    A dataset that reshuffles in each epoch counts its iterations in a resource. The rebuilt one has a shuffle
    of its own, with the same seeds.

    Raises:
        CannotJudge: the graph cannot be rebuilt.
    """
    try:
        serialized = dataset._as_serialized_graph(external_state_policy=ExternalStatePolicy.IGNORE)
        graph = tf.compat.v1.GraphDef.FromString(serialized.numpy())
        nodes = [*graph.node, *(node for function in graph.library.function for node in function.node_def)]
        for node in nodes:
            if node.op == "ShuffleDatasetV3":
                node.op = "ShuffleDataset"  # the older operation, which keeps its count to itself
                del node.input[4:]
        (result,) = (node.input[0] for node in graph.node if node.op == "_Retval")
        name = result if ":" in result else f"{result}:0"

        def rebuild() -> Any:
            return tf.graph_util.import_graph_def(graph, return_elements=[name], name="")[0]

        variant = tf.compat.v1.wrap_function(rebuild, [])()
        twin: tf.data.Dataset = dataset_ops.from_variant(variant, dataset.element_spec)
    except Exception as error:
        raise CannotJudge(
            f"the tf.data.Dataset cannot be rebuilt ({type(error).__name__}), and iterating yours could change "
            "the order in which training sees it, so nothing was read"
        ) from None
    return twin


def dataset_facts(data: KerasData, classifies: bool) -> DatasetFacts:
    """Read the first batches and turn their rows into facts.

    Args:
        data: the training data.
        classifies: see `SeenRows`.

    Raises:
        StageFailed: there is no batch.
    """
    rows, started = SeenRows(classifies=classifies), time.monotonic()
    for batch in data.batches():
        rows.add(batch)
        if rows.complete or time.monotonic() - started > SECONDS_READING:
            break
    return rows.facts(data.size, data.shuffled, data.whole_rows_at_hand)


def rows_of(data: KerasData, seconds: float) -> list[dict[str, Any]]:
    """Read rows, inputs only, for at most so many seconds."""
    started = time.monotonic()
    rows: list[dict[str, Any]] = []
    for batch in data.batches():
        x, _, _ = unpack(batch)
        arrays = {name: array for name, value in named(x).items() if (array := as_array(value)) is not None}
        size = min((len(array) for array in arrays.values() if array.ndim), default=0)
        rows += [{name: array[row] for name, array in arrays.items() if array.ndim} for row in range(size)]
        if len(rows) >= TRAINING_ROWS or time.monotonic() - started > seconds:
            break
    return rows


def rows_with_targets(data: KerasData, kind: LossKind, num_classes: int | None) -> KeptRows | None:
    """Copy rows of the data; None where inputs or target are no single array.

    Args:
        data: the training data.
        kind: of the loss.
        num_classes: that it tells apart; None where its targets name no classes.
    """
    started, inputs, targets = time.monotonic(), list[Any](), list[Any]()
    for batch in data.batches():
        x, y, _ = unpack(batch)
        x, y = as_array(x), as_array(y)
        if x is None or y is None or len(x) != len(y):
            return None
        inputs.append(x)
        targets.append(y.reshape(len(y), -1))
        if sum(map(len, inputs)) >= KEPT_ROWS or sum(one.nbytes for one in inputs) > KEPT_BYTES:
            break
        if time.monotonic() - started > KEPT_SECONDS:
            break
    return rows_of_loss(kind, np.concatenate(inputs), np.concatenate(targets).astype(np.float64), num_classes)


def rows_of_loss(kind: LossKind, rows: Array, targets: Array, num_classes: int | None) -> KeptRows | None:
    """Pair rows with their targets (n, outputs), class numbers as a share of each; None for other numbers."""
    if num_classes is not None and targets.shape[1] == 1:
        labels = targets[:, 0].astype(int)
        if not len(labels) or labels.min() < 0 or labels.max() >= num_classes:
            return None
        targets = np.eye(num_classes)[labels]
    return KeptRows(kind, rows, targets)


def reread_batch(sequence: keras.utils.PyDataset) -> RereadFacts:
    """Read the first batch of a sequence twice, through copies of it."""
    with global_states_kept(sequence):
        return reread(
            Source(
                dataset=sequence,
                collate=None,
                read=lambda copied: copied[0],
                seed=seed_globals,
                fresh_workers=getattr(sequence, "workers", 1) > 0
                and getattr(sequence, "use_multiprocessing", False),
            )
        )


def rows_in(dataset: tf.data.Dataset) -> int | None:
    """Return the number of rows of a batched dataset, if it knows its length and its batch size."""
    batches = int(dataset.cardinality())
    source: Any = dataset
    while source is not None and not hasattr(source, "_batch_size"):
        source = getattr(source, "_input_dataset", None)
    size = None if source is None else tf.get_static_value(source._batch_size)
    if size is None or batches < 0:
        return None
    before = int(source._input_dataset.cardinality())  # the last batch may not be full
    most = int(size) * batches
    return before if most - int(size) < before < most else most

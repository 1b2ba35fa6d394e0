"""Decides whether training data can be read during a `fit` without side effects, and describes its source."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.shared.script_line import defined_at
from diagnostics.facts.step_times import BatchSource

from .internals import DATASETS, DatasetV2, op_def_registry, script_ops

# Sources in memory, and transformations that keep no state outside of an iterator. Shuffling counts its iterations
# in a resource and fills a buffer, a cache is filled by whoever reads first, and files may be pipes: not listed.
_PURE = frozenset(
    {
        "_TensorSliceDataset", "_TensorDataset", "_RangeDataset", "_MapDataset", "_ParallelMapDataset",
        "_BatchDataset", "_ParallelBatchDataset", "_PaddedBatchDataset", "_UnbatchDataset", "_PrefetchDataset",
        "_ZipDataset", "_ConcatenateDataset", "_TakeDataset", "_SkipDataset", "_RepeatDataset", "_ShardDataset",
        "_OptionsDataset", "_RestructuredDataset",
    }
)  # fmt: skip
# TensorFlow lists these as stateful. They only run functions of the same graph, which are looked at by themselves.
_CALLS = frozenset({"PartitionedCall", "StatefulPartitionedCall", "If", "While", "Case", "StatelessIf", "_Arg"})
_FILES = frozenset({"ReadFile", "MatchingFiles"})  # stateless to TensorFlow, but a file may be a pipe
_PY_FUNCTIONS = frozenset({"PyFunc", "PyFuncStateless", "EagerPyFunc"})
_UNKNOWN = "?"
SMALL_BUFFER = 0.1  # of the rows: a shuffle that holds no more at a time hardly changes their order
BATCH_SIZE = 32  # `fit`'s own


def can_be_read(data: Any) -> bool:
    """Whether reading this goes unnoticed: arrays in memory, and `tf.data` made of pure steps on tensors."""
    if isinstance(data, DatasetV2):
        return all(
            type(part).__module__.startswith(DATASETS)
            and type(part).__name__ in _PURE
            and all(map(_is_pure, _operations(part)))
            for part in _parts(data)
        )
    if isinstance(data, tuple | list):
        return bool(data) and all(part is None or can_be_read(part) for part in data)
    if isinstance(data, Mapping):
        return bool(data) and all(map(can_be_read, data.values()))
    return type(data) in (np.ndarray, np.memmap) or isinstance(data, tf.Tensor)


def runs_python(data: Any) -> bool:
    """Whether reading this may run Python code, which `tf.data` and `PyDataset` do in threads of their own."""
    if not isinstance(data, DatasetV2):
        return not can_be_read(data)
    return any(
        not type(part).__module__.startswith(DATASETS)
        or any(name in _PY_FUNCTIONS or name == _UNKNOWN for name in _operations(part))
        for part in _parts(data)
    )


def transformations(data: Any) -> set[str]:
    """Return the classes of a `tf.data` pipeline by name, as ``_PrefetchDataset``."""
    return {type(part).__name__ for part in _parts(data)}


def calls_generator(data: Any) -> bool:
    """Whether a `tf.data` pipeline draws from a Python generator, which may yield each element only once."""
    return isinstance(data, DatasetV2) and any(
        name == "GeneratorDataset" for part in _parts(data) for name in _operations(part)
    )


def python_functions(data: Any) -> list[Any]:
    """Return what `py_function` and its kind call within a `tf.data` pipeline."""
    if not isinstance(data, DatasetV2):
        return []
    functions = [function for part in _parts(data) for function in _functions(part) if function is not None]
    nodes = [node for function in functions for node in _nodes(function)]
    return [script_ops._py_funcs.get(node.attr["token"].s) for node in nodes if node.op in _PY_FUNCTIONS]


def shuffles(data: Any) -> bool | None:
    """Whether a `tf.data` pipeline shuffles; False where only by small buffers, None where it is not seen to."""
    if not isinstance(data, DatasetV2):
        return None
    found = None
    for part in _parts(data):
        if any("Shuffle" in name for name in (type(part).__name__, *_operations(part))):
            if not _has_small_buffer(part):
                return True
            found = False
    return found


def _has_small_buffer(part: Any) -> bool:
    """Whether a shuffle is known to hold less than a tenth of what it shuffles at a time."""
    given = list(part._inputs())
    size = tf.get_static_value(getattr(part, "_buffer_size", None)) if hasattr(part, "_buffer_size") else None
    if size is None or len(given) != 1:
        return False
    return 0 < int(size) < SMALL_BUFFER * int(given[0].cardinality())


def _parts(dataset: Any) -> Iterator[Any]:
    waiting, seen = [dataset], set()
    while waiting:
        part = waiting.pop()
        if id(part) not in seen:
            seen.add(id(part))
            yield part
            waiting.extend(part._inputs())


def _operations(part: Any) -> Iterator[str]:
    """Name the operations of the functions that one step of a pipeline calls, those called by these included."""
    for function in _functions(part):
        if function is None or any(given.dtype in (tf.resource, tf.variant) for given in function.captured_inputs):
            yield _UNKNOWN  # what cannot be looked into; a variable, a table or another dataset
        else:
            yield from (node.op for node in _nodes(function))


def _functions(part: Any) -> Iterator[Any]:
    """Yield the functions of one step; None for one whose graph is not there."""
    for called in part._functions():
        function = getattr(called, "function", called)
        yield function if hasattr(function, "graph") else None


def _nodes(function: Any) -> Iterator[Any]:
    yield from (operation.node_def for operation in function.graph.get_operations() if operation.type != "Const")
    if function.graph._functions:  # or the graph, and the constants in it, would be copied for nothing
        for inner in function.graph.as_graph_def().library.function:
            yield from inner.node_def


def _is_pure(operation: str) -> bool:
    if operation in _CALLS:
        return True
    known = op_def_registry.get(operation)
    return known is not None and not known.is_stateful and operation not in _FILES


def batch_source(data: Any) -> BatchSource | None:
    """Return the source that the argument `x` of `fit` is; None for arrays, whose rows are at hand."""
    if isinstance(data, keras.utils.PyDataset):
        items = defined_at(getattr(type(data), "__getitem__", None))
        return BatchSource("PyDataset", workers=int(data.workers), items=items)
    if isinstance(data, DatasetV2):
        made_of = transformations(data)
        return BatchSource("tf.data", prefetches="_PrefetchDataset" in made_of, caches="_CacheDataset" in made_of)
    return BatchSource() if hasattr(data, "__next__") else None


def planned_steps(*arguments: Any, **options: Any) -> int | None:
    """Return the number of batches that `fit` draws at most; None if that is not known before.

    Args:
        arguments: of `keras.Model.fit`, the model first.
        options: likewise.
    """
    try:
        return _planned(inspect.signature(keras.Model.fit).bind(*arguments, **options).arguments)
    except (TypeError, ValueError):  # `fit` itself will refuse them
        return None


def _planned(given: dict[str, Any]) -> int | None:
    epochs = int(given.get("epochs", 1)) - int(given.get("initial_epoch", 0))
    a_round = given.get("steps_per_epoch")
    if a_round is None:
        a_round = _batches_in(given.get("x"), given.get("batch_size"), given.get("validation_split") or 0.0)
    return None if a_round is None else max(epochs, 0) * int(a_round)


def _batches_in(data: Any, batch_size: Any, validation_split: float) -> int | None:
    if isinstance(data, tf.data.Dataset):
        known = int(data.cardinality())
        return known if known >= 0 else None  # infinite, or unknown
    if isinstance(data, keras.utils.PyDataset):
        return None if data.num_batches is None else int(data.num_batches)
    leaf = next((leaf for leaf in keras.tree.flatten(data) if hasattr(leaf, "shape") and len(leaf.shape)), None)
    if leaf is None:
        return None
    rows = int(leaf.shape[0] * (1 - validation_split))
    return -(-rows // int(batch_size or BATCH_SIZE))

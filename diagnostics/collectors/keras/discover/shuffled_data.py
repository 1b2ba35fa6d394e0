"""Finds splits and predictions of `tf.data` that a shuffle, redrawn for each iteration, makes wrong."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.installed import is_installed_module
from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.collectors.source.mixed_passes import held_in, mixed_in
from diagnostics.collectors.source.read import parsed
from diagnostics.facts.array import Array
from diagnostics.facts.data import ShuffledPredictions, ShuffledSplit

_CUTS = {"_TakeDataset": "take", "_SkipDataset": "skip"}
_FIXES_ORDER = ("_CacheDataset", "CacheDataset", "_SaveDataset", "_SnapshotDataset")
MOST = 8  # predictions of shuffled datasets that are remembered
DEPTH = 8  # calls between the comparison and the loop over the dataset, at most

Place = tuple[str, str]  # a file, and the name of a function in it


def split_of(training: Any, validation: Any) -> ShuffledSplit | None:
    """Return how both are cut from one shuffle that is redrawn each time; None if they are not."""
    if not (isinstance(training, tf.data.Dataset) and isinstance(validation, tf.data.Dataset)):
        return None
    ours, theirs = dict(_shuffles(training)), dict(_shuffles(validation))
    for shuffle, cut in theirs.items():
        if shuffle in ours and {cut, ours[shuffle]} == {"take", "skip"}:
            return ShuffledSplit(training=ours[shuffle], validation=cut)
    return None


def _shuffles(dataset: Any) -> Iterator[tuple[Any, str]]:
    """Yield the shuffles of a pipeline that redraw, and the first cut that is made after each, if there is one.

    What stands before a cache is not looked at: the first iteration fixes its order.
    """
    waiting, seen = [(dataset, "")], set[int]()
    while waiting:
        part, cut = waiting.pop()
        name = type(part).__name__
        if id(part) in seen or name in _FIXES_ORDER:
            continue
        seen.add(id(part))
        cut = _CUTS.get(name, cut)
        if cut and getattr(part, "_reshuffle_each_iteration", None) is True:
            yield part, cut
        waiting += [(before, cut) for before in part._inputs()]


def is_finite(data: Any) -> bool:
    """Whether a pipeline knows how many elements it has: others may make up new ones each time."""
    return isinstance(data, tf.data.Dataset) and int(data.cardinality()) >= 0


def is_reshuffled(dataset: Any) -> bool:
    """Whether each iteration of a dataset has another order of its elements."""
    waiting, seen = [dataset], set[int]()
    while waiting:
        part = waiting.pop()
        if id(part) in seen or type(part).__name__ in _FIXES_ORDER:
            continue
        seen.add(id(part))
        if getattr(part, "_reshuffle_each_iteration", None) is True:
            return True
        waiting += part._inputs()
    return False


def is_permuted(dataset: Any) -> bool:
    """Whether a sequence of batches draws its rows in another order than that of their source.

    One of Keras' own that was told to shuffle does, and one that holds a permutation of its rows.
    """
    if not isinstance(dataset, keras.utils.PyDataset):
        return False
    if getattr(dataset, "shuffle", None) is True and type(dataset).__module__.startswith("keras."):
        return True
    arrays = [one for one in vars(dataset).values() if isinstance(one, np.ndarray)]
    return any(_is_permutation(one) for one in arrays if one.ndim == 1 and one.dtype.kind in "iu")


def _is_permutation(order: Array) -> bool:
    steps = np.arange(len(order))
    return len(order) > 1 and bool((order != steps).any()) and bool((np.sort(order) == steps).all())


class ShuffledPasses:
    """Notes predictions of a shuffled dataset with targets, and that the script holds another pass against them.

    That it iterates the dataset itself proves nothing: it may count the classes. Its source has to bring both
    together.

    Args:
        found: called once with a model whose predictions are compared with targets in another order.
    """

    def __init__(self, found: Callable[[Any, ShuffledPredictions], object]) -> None:
        self._found = found
        self._predicted: list[tuple[weakref.ref[Any], weakref.ref[Any]]] = []  # dataset and model
        self._iterated: list[tuple[set[Place], list[weakref.ref[Any]]]] = []  # where, and what it was made of
        self._mixed: dict[str, set[str]] = {}  # files, and the functions in which both meet
        self._held: dict[str, set[str]] = {}  # the same, of answers and labels in the order of their source

    def predicts(self, model: Any, dataset: Any) -> None:
        """Take a call of `predict` that is about to run."""
        if len(self._predicted) < MOST and _has_targets(dataset) and is_reshuffled(dataset):
            self._predicted.append((weakref.ref(dataset), weakref.ref(model)))
            self._compare()

    def predicts_permuted(self, model: Any, dataset: Any) -> None:
        """Take a call of `predict`, on a sequence, by a script that may hold its labels against the answers."""
        for file, function in _places(_caller()):
            if file not in self._held:
                tree = parsed(file)
                self._held[file] = set() if tree is None else held_in(tree)
            if function in self._held[file]:
                self._found(model, ShuffledPredictions(sequence=type(dataset).__name__))
                return

    def iterates(self, dataset: Any) -> None:
        """Take an iteration that is about to begin."""
        caller = _caller()
        if caller is None or is_installed_module(caller.f_globals.get("__name__", "")):
            return
        if tf.executing_eagerly():
            self._note(dataset, set(_places(caller)))

    def _note(self, dataset: Any, places: set[Place]) -> None:
        if len(self._iterated) < MOST and _has_targets(dataset) and is_reshuffled(dataset):
            self._iterated.append((places, [weakref.ref(part) for part in _sources(dataset)]))
            self._compare()

    def _compare(self) -> None:
        for given, of in self._predicted:
            dataset, model = given(), of()
            passes = (places for places, parts in self._iterated if any(part() is dataset for part in parts))
            if model is not None and dataset is not None and any(map(self._are_mixed, passes)):
                self._predicted, self._iterated = [], []
                self._found(model, ShuffledPredictions())
                return

    def _are_mixed(self, places: set[Place]) -> bool:
        for file in {file for file, _ in places} - self._mixed.keys():
            tree = parsed(file)
            self._mixed[file] = set() if tree is None else mixed_in(tree)
        return any(function in self._mixed[file] for file, function in places)


def _caller() -> FrameType | None:
    """Return the frame that has called the function of the framework whose call is observed."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename != FROZEN:
        frame = frame.f_back
    return None if frame is None else frame.f_back


def _places(frame: FrameType | None) -> Iterator[Place]:
    """Yield the functions of the script that are running, each with its file."""
    for _ in range(DEPTH):
        if frame is None:
            return
        if not is_installed_module(frame.f_globals.get("__name__", "")):
            yield frame.f_code.co_filename, frame.f_code.co_name
        frame = frame.f_back


def _has_targets(dataset: Any) -> bool:
    """Whether the elements are pairs, of which `predict` drops the second part."""
    spec = getattr(dataset, "element_spec", None)
    return isinstance(spec, tuple) and len(spec) in (2, 3)


def _sources(dataset: Any) -> Iterator[Any]:
    """Yield a dataset and those that it passes on whole: not what `take` draws a few rows of, to look at them."""
    waiting = [dataset]
    while waiting:
        part = waiting.pop()
        yield part
        waiting += () if _CUTS.get(type(part).__name__) == "take" else part._inputs()

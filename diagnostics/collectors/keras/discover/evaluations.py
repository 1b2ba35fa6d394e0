"""Compares what a Keras model is evaluated on with what `fit` trained it on: inputs, rows of folds, shuffles."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import FrameType
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.installed import is_installed_module
from diagnostics.collectors.isolation.patching import FROZEN
from diagnostics.collectors.keras.batch import inputs_of
from diagnostics.collectors.keras.data import KerasData
from diagnostics.collectors.keras.replayable import can_be_read
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.shared.input_sample import Collected, samples, samples_of_batches, take_arrays
from diagnostics.collectors.shared.repeated_rows import row_keys
from diagnostics.collectors.shared.rescaled_rows import RescaledRows
from diagnostics.collectors.source.mixed_passes import held_in, mixed_in
from diagnostics.collectors.source.read import parsed
from diagnostics.facts.array import Array
from diagnostics.facts.data import FitData, HeldOutBefore, ShuffledPredictions, ShuffledSplit
from diagnostics.facts.inputs import InputFacts, InputSample
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

BATCHES = 8  # of an evaluation
CALLS = 4  # of `evaluate` and `predict` of one model that are looked at
FEW, TOGETHER = 16, 64  # pictures; calls of `predict` with fewer are put together, up to so many of them

Samples = Mapping[str, InputSample]
Delivered = InputFacts | ShuffledSplit | ShuffledPredictions | HeldOutBefore | FitData

MOST = 2**17  # rows of a fit that are remembered; of more none are
FITS = 32  # of a model that are followed: folds are fewer, and an agent that fits each batch has thousands
LEAST = 20  # rows of an evaluation
SEEN, NEW = 0.9, 0.01  # of them, that earlier fits had, and at most, that the latest has
SHARED = 0.3  # of the latest fit's rows: folds share half and more, tasks that are learned in turn share none
EVALUATIONS = 2  # after different fits: one may be a look back
WEIGHTS = 4096  # numbers of each variable, by which weights are recognised
_CUTS = {"_TakeDataset": "take", "_SkipDataset": "skip"}
_FIXES_ORDER = ("_CacheDataset", "CacheDataset", "_SaveDataset", "_SnapshotDataset")
MOST_PASSES = 8  # predictions of shuffled datasets that are remembered
DEPTH = 8  # calls between the comparison and the loop over the dataset, at most

Place = tuple[str, str]  # a file, and the name of a function in it


class Evaluations:
    """Listens to `evaluate` and `predict`, and looks at the validation data of `fit`.

    Only data that can be read without side effects is looked at: arrays, and `tf.data` made of pure steps.
    """

    def __init__(self, guard: FaultGuard) -> None:
        """Start listening, until `close`; `guard` runs the work."""
        self._guard, self._within = guard, 0
        self._listeners: IdentityMap[Any, tuple[Callable[[], Samples], Callable[[Delivered], object]]]
        self._listeners = IdentityMap()
        self._calls: IdentityMap[Any, int] = IdentityMap()
        self._single: IdentityMap[Any, tuple[int, dict[str, Collected]]] = IdentityMap()  # predictions for few
        self._folds, self._first = Folds(), IdentityMap[Any, Callable[[Delivered], object]]()
        self._passes = ShuffledPasses(self._mixed_up)
        self.close = subscribe(
            guard.attempt,
            (taps.evaluate.before, partial(self._called, 0)),
            (taps.predict.before, partial(self._called, 1)),
            (taps.dataset_iter.before, self._passes.iterates),
        )

    def fit_begins(
        self,
        model: Any,
        validation: Any,
        training: Callable[[], Samples],
        deliver: Callable[[Delivered], object],
        data: Any = None,
    ) -> Callable[[], object]:
        """Take the arguments of a `fit` that is about to run; return what to call at its end.

        Args:
            model: the one that is fitted.
            validation: its validation data; None if there is none.
            training: gives a part of the inputs that it was trained on.
            deliver: called with the inputs of each evaluation, and with what is wrong with its pipeline.
            data: that it is fitted on.
        """
        self._within += 1
        self._listeners[model] = training, deliver
        self._first.setdefault(model, deliver)  # the first fit of a model is examined, no other
        self._guard.attempt(self._folds.fit_begins, model, data)

        def ends() -> None:
            self._within -= 1
            self._guard.attempt(self._folds.fit_ended, model)
            self._guard.attempt(self._look_for_folds, model, validation)
            if validation is not None:
                self._guard.attempt(self._compare, model, validation, 0)
                self._guard.attempt(self._look_for_cuts, model, data, validation)

        return ends

    def _look_for_folds(self, model: Any, data: Any) -> None:
        found = self._folds.evaluated(model, data[0] if isinstance(data, tuple) else data)
        if found is not None:
            self._first[model](found)

    def _look_for_cuts(self, model: Any, training: Any, validation: Any) -> None:
        if training is validation and is_finite(training):
            self._listeners[model][1](FitData("tf.data.Dataset", validates=True))
        split = split_of(training, validation)
        if split is not None:
            self._listeners[model][1](split)

    def _mixed_up(self, model: Any, found: ShuffledPredictions) -> None:
        if model in self._listeners:
            self._listeners[model][1](found)

    def _called(self, rounds: int, model: Any, x: Any = None, *_arguments: Any, **_options: Any) -> None:
        if self._within or model not in self._listeners or x is None:
            return
        self._look_for_folds(model, x)
        if rounds and isinstance(x, tf.data.Dataset):
            self._passes.predicts(model, x)
        elif rounds and is_permuted(x):
            self._passes.predicts_permuted(model, x)
        elif rounds and self._add_few(model, x):
            return
        self._calls[model] = self._calls.get(model, 0) + 1
        if self._calls[model] <= CALLS:
            self._compare(model, x if isinstance(x, tf.data.Dataset) else (x, None), rounds)

    def _add_few(self, model: Any, x: Any) -> bool:
        """Take a prediction for few pictures; compare the first by itself, and then all of them together."""
        before, together = self._single.get(model, (0, {}))
        batch = _few_pictures(x) if before < TOGETHER else {}
        if not batch:
            return False
        after = before + _rows(batch)
        self._single[model] = after, together
        take_arrays(together, batch)
        if not before or before // FEW < after // FEW:
            self._deliver(model, samples(together), 1)
        return True

    def _compare(self, model: Any, data: Any, rounds: int) -> None:
        self._deliver(model, _samples(data), rounds)

    def _deliver(self, model: Any, seen: Samples, rounds: int) -> None:
        training, deliver = self._listeners[model]
        given = training()
        both = seen.keys() & given.keys()
        if both:
            ours, theirs = ({name: side[name] for name in both} for side in (given, seen))
            deliver(InputFacts(ours, theirs, rounds, _outputs(model)))


def _outputs(model: Any) -> int:
    """Return the number of units in the last trainable layer; 0 if no layer is trainable."""
    last = model.trainable_variables[-1:]
    return int(last[0].shape[-1]) if last and last[0].shape else 0


def _few_pictures(x: Any) -> Mapping[str, Any]:
    """Return the inputs of a prediction for a few pictures; nothing for any other."""
    if isinstance(x, tf.data.Dataset) or not can_be_read((x, None)):
        return {}
    inputs = inputs_of((x,))
    pictures = all(array.ndim > 3 for array in inputs.values())
    return inputs if inputs and pictures and 0 < _rows(inputs) < FEW else {}


def _rows(batch: Mapping[str, Any]) -> int:
    return len(next(iter(batch.values())))


def _samples(data: Any) -> Samples:
    """Read a part of the inputs; nothing where reading has side effects."""
    if not can_be_read(data):
        return {}
    return samples_of_batches(inputs_of(batch) for batch in islice(KerasData(data).batches(), BATCHES))


@dataclass
class _Fits:
    """The fits of one model since its weights were made or set.

    Attributes:
        count: of them.
        latest: keys of the rows of the latest.
        earlier: of those before it.
        ended: the weights at its end; None while it runs.
        found: the fits after which such rows were evaluated.
        rows: of all of them; each fit may scale them differently.
    """

    count: int
    latest: Array
    earlier: Array
    ended: Array | None
    found: set[int]
    rows: RescaledRows


class Folds:
    """Remembers a number for each row of a fit."""

    def __init__(self) -> None:
        self._fits: IdentityMap[Any, _Fits] = IdentityMap()
        self._begun: IdentityMap[Any, int] = IdentityMap()

    def fit_begins(self, model: Any, x: Any) -> None:
        """Take the rows of a fit that is about to run."""
        self._begun[model] = self._begun.get(model, 0) + 1
        before = self._fits.pop(model, None)
        if self._begun[model] > FITS:
            return
        inputs = _inputs(x)
        keys = row_keys(inputs)
        if keys is None or not model.built:
            return
        if before is None or before.ended is None or not np.array_equal(before.ended, _weights(model)):
            self._fits[model] = _Fits(1, keys, np.empty(0, np.uint64), None, set(), RescaledRows(inputs, keys))
        else:
            keys = before.rows.fitted(inputs, keys)
            earlier = np.union1d(before.earlier, before.latest)
            self._fits[model] = _Fits(before.count + 1, keys, earlier, None, before.found, before.rows)

    def fit_ended(self, model: Any) -> None:
        """Remember the weights, to know whether they are set otherwise before the next fit."""
        if (fits := self._fits.get(model)) is not None:
            fits.ended = _weights(model)

    def evaluated(self, model: Any, x: Any) -> HeldOutBefore | None:
        """Compare the rows of an evaluation; return what was found, once it is certain."""
        fits = self._fits.get(model)
        if fits is None or fits.count < 2 or fits.count in fits.found or len(fits.found) >= EVALUATIONS:
            return None
        inputs = _inputs(x)
        keys = row_keys(inputs)
        if keys is None or len(keys) < LEAST or np.isin(fits.latest, fits.earlier).mean() < SHARED:
            return None
        keys = fits.rows.known(inputs, keys)
        seen = np.isin(keys, fits.earlier)
        if seen.mean() < SEEN or np.isin(keys, fits.latest).mean() > NEW:
            return None
        fits.found.add(fits.count)
        if len(fits.found) < EVALUATIONS:
            return None
        return HeldOutBefore(fits.count, len(fits.found), len(keys), int(seen.sum()))


def _inputs(x: Any) -> list[Array]:
    """Return the inputs of a call; none if they cannot be read, or are too many."""
    if x is None or not can_be_read((x, None)):
        return []
    if any(isinstance(part, tf.data.Dataset | np.memmap) for part in keras.tree.flatten(x)):
        return []  # the latter lie on a disk
    inputs = list(inputs_of((x,)).values())
    rows = {len(part) for part in inputs if part.ndim > 1}
    if len(rows) != 1 or not all(part.ndim > 1 for part in inputs) or not 0 < rows.pop() <= MOST:
        return []
    return inputs


def _weights(model: Any) -> Array:
    """Return some numbers of each trainable variable."""
    flat = [tf.reshape(current(one), (-1,))[:WEIGHTS].numpy() for one in model.trainable_variables]
    return np.concatenate(flat) if flat else np.empty(0)


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

    Operations before a cache are ignored: the first iteration fixes its order.
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
        if len(self._predicted) < MOST_PASSES and _has_targets(dataset) and is_reshuffled(dataset):
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
        if len(self._iterated) < MOST_PASSES and _has_targets(dataset) and is_reshuffled(dataset):
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

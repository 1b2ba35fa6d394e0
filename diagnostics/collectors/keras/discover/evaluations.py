"""Compares what a Keras model is evaluated on with what `fit` trained it on: the inputs, and the rows of folds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.keras.batch import inputs_of
from diagnostics.collectors.keras.data import KerasData
from diagnostics.collectors.keras.replayable import can_be_read
from diagnostics.collectors.keras.values import current
from diagnostics.collectors.shared.input_sample import Collected, samples, samples_of_batches, take_arrays
from diagnostics.collectors.shared.repeated_rows import row_keys
from diagnostics.facts.array import Array
from diagnostics.facts.data import HeldOutBefore, SameData, ShuffledPredictions, ShuffledSplit
from diagnostics.facts.inputs import InputFacts, InputSample
from diagnostics.taps import keras as taps
from diagnostics.taps.tap import subscribe

from .shuffled_data import ShuffledPasses, is_finite, is_permuted, split_of

BATCHES = 8  # of an evaluation
CALLS = 4  # of `evaluate` and `predict` of one model that are looked at
FEW, TOGETHER = 16, 64  # pictures; calls of `predict` with fewer are put together, up to so many of them

Samples = Mapping[str, InputSample]
Delivered = InputFacts | ShuffledSplit | ShuffledPredictions | HeldOutBefore | SameData

MOST = 2**17  # rows of a fit that are remembered; of more none are
FITS = 32  # of a model that are followed: folds are fewer, and an agent that fits each batch has thousands
LEAST = 20  # rows of an evaluation
SEEN, NEW = 0.9, 0.01  # of them, that earlier fits had, and at most, that the latest has
SHARED = 0.3  # of the latest fit's rows: folds share half and more, tasks that are learned in turn share none
EVALUATIONS = 2  # after different fits: one may be a look back
WEIGHTS = 4096  # numbers of each variable, by which weights are recognised


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
            self._listeners[model][1](SameData("tf.data.Dataset"))
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
    """

    count: int
    latest: Array
    earlier: Array
    ended: Array | None
    found: set[int]


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
        keys = _keys(x)
        if keys is None or not model.built:
            return
        if before is None or before.ended is None or not np.array_equal(before.ended, _weights(model)):
            self._fits[model] = _Fits(1, keys, np.empty(0, np.uint64), None, set())
        else:
            earlier = np.union1d(before.earlier, before.latest)
            self._fits[model] = _Fits(before.count + 1, keys, earlier, None, before.found)

    def fit_ended(self, model: Any) -> None:
        """Remember the weights, to know whether they are set otherwise before the next fit."""
        if (fits := self._fits.get(model)) is not None:
            fits.ended = _weights(model)

    def evaluated(self, model: Any, x: Any) -> HeldOutBefore | None:
        """Compare the rows of an evaluation; return what was found, once it is certain."""
        fits = self._fits.get(model)
        if fits is None or fits.count < 2 or fits.count in fits.found or len(fits.found) >= EVALUATIONS:
            return None
        keys = _keys(x)
        if keys is None or len(keys) < LEAST or np.isin(fits.latest, fits.earlier).mean() < SHARED:
            return None
        seen = np.isin(keys, fits.earlier)
        if seen.mean() < SEEN or np.isin(keys, fits.latest).mean() > NEW:
            return None
        fits.found.add(fits.count)
        if len(fits.found) < EVALUATIONS:
            return None
        return HeldOutBefore(fits.count, len(fits.found), len(keys), int(seen.sum()))


def _keys(x: Any) -> Array | None:
    if x is None or not can_be_read((x, None)):
        return None
    if any(isinstance(part, tf.data.Dataset | np.memmap) for part in keras.tree.flatten(x)):
        return None  # the latter lie on a disk
    inputs = list(inputs_of((x,)).values())
    rows = {len(part) for part in inputs if part.ndim > 1}
    if len(rows) != 1 or not all(part.ndim > 1 for part in inputs) or not 0 < rows.pop() <= MOST:
        return None
    return row_keys(inputs)


def _weights(model: Any) -> Array:
    """Return some numbers of each trainable variable."""
    flat = [tf.reshape(current(one), (-1,))[:WEIGHTS].numpy() for one in model.trainable_variables]
    return np.concatenate(flat) if flat else np.empty(0)

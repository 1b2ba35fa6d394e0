"""Notes what a training loop of the script computes under its first `tf.GradientTape`: models, loss and batch."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.keras.dependence.subject import KeptBatch, keep_batch
from diagnostics.collectors.keras.values import array_of
from diagnostics.taps import keras as taps

TRIES = 3  # tapes that are listened to, until one shows a model; the first may be of a penalty
CALLS = 64  # of models and layers under one tape; more, and nothing is learned of it
MOST_BYTES = 16 * 2**20  # of the weights of models that are kept alive, and as much of their first values


class TapePass:
    """What was called under one tape, and what its gradients led to.

    It keeps nothing of the script alive, unless it is told to with `hold`.

    Args:
        parts: models and layers, each fed with what the one before returned.
        loss: the only loss object that was called, on what the last part returned; None if there is none.

    Attributes:
        batch: copied rows; None where they are not known.
        norms: L2 norm of the gradient by path, of the variables that the script asked for and that have one; None
            within a graph.
        unreached: sizes, in scalars, of those that have none.
        asked: scalars in all variables that the script asked for.
        starts: variables with their values before the first step, while they are held; empty if not known.
    """

    def __init__(self, parts: tuple[Any, ...], loss: Any) -> None:
        self._parts = tuple(weakref.ref(part) for part in parts)
        self._loss = None if loss is None else weakref.ref(loss)
        self._held: tuple[Any, ...] = ()
        self._optimizer: Callable[[], Any] = lambda: None
        self.batch: KeptBatch | None = None
        self.norms: dict[str, float] | None = None
        self.unreached: dict[str, int] = {}
        self.asked = 0
        self.starts: tuple[tuple[Any, Any], ...] = ()

    @property
    def parts(self) -> tuple[Any, ...]:
        """The models and layers; empty if the script has freed one of them."""
        parts = tuple(part() for part in self._parts)
        return () if any(part is None for part in parts) else parts

    @property
    def loss(self) -> Any:
        """The loss object; None if there is none."""
        return None if self._loss is None else self._loss()

    @property
    def optimizer(self) -> Any:
        """The one whose first step this led to; None if there is none, or the script has freed it."""
        return self._optimizer()

    def leads_to(self, optimizer: Any) -> None:
        """Note whose first step this led to."""
        self._optimizer = weakref.ref(optimizer)

    def hold(self) -> None:
        """Keep models, loss and optimizer alive until `release`."""
        self._held = (*self.parts, self.loss, self.optimizer)

    def release(self) -> None:
        """Drop what is kept."""
        self._held, self.batch, self.starts = (), None, ()


class TapeRecorder:
    """Listens to the first tapes; nothing is patched before, between and after them.

    Args:
        safely: runs the work, and takes its faults.
    """

    def __init__(self, safely: Callable[..., Any]) -> None:
        self._safely = safely
        self._tries, self._listens = 0, False
        self._listening = contextlib.ExitStack()
        self._calls: list[tuple[Any, Any, Any]] = []
        self._losses: list[tuple[Any, Any, Any]] = []
        self._seen: TapePass | None = None
        self._symbolic: tuple[Any, Any] | None = None

    def begins(self) -> None:
        """Listen to the tape that begins, if none has shown a model yet."""
        if self._seen is not None or self._tries >= TRIES:
            return
        self._calls.clear()
        self._losses.clear()
        if not self._listens:
            self._listens = True
            self._listening.callback(taps.layer_call.after.subscribe(self._layer_called))
            self._listening.callback(taps.loss_call.before.subscribe(self._loss_called))

    def ended(self, sources: Any, gradients: Any) -> None:
        """Take what a tape was asked for, and its answer."""
        if not self._listens:
            return
        self.close()
        self._tries += 1
        parts, x = self._chain()
        if parts:
            self._seen = self._pass(parts, x, tf.nest.flatten(sources), tf.nest.flatten(gradients))
        self._calls.clear()
        self._losses.clear()

    def take(self, optimizer: Any, variables: list[Any]) -> TapePass | None:
        """Return what led to the first step of an optimizer on these variables, and hold it if that is small."""
        seen, held = self._seen, set(map(id, variables))
        if seen is None or not any(id(v) in held for part in seen.parts for v in part.trainable_variables):
            return None
        seen.leads_to(optimizer)
        if any(isinstance(part, keras.Model) and part.compiled for part in seen.parts):  # examined as one of `fit`
            return seen
        every = [variable for part in seen.parts for variable in part.variables]
        if sum(int(np.prod(v.shape)) * tf.as_dtype(v.dtype).size for v in every) <= MOST_BYTES:
            seen.hold()
            if tf.executing_eagerly():
                seen.starts = tuple((variable, array_of(variable)) for variable in every)
        return seen

    def release(self) -> None:
        """Drop what was seen: several optimizers step, and which models belong to which is not known."""
        if self._seen is not None:
            self._seen.release()
        self._symbolic = None

    def called(self, arguments: Any, options: Any) -> None:
        """Take the arguments of the call in which a graph was traced, which its tensors stand for."""
        symbolic, self._symbolic = self._symbolic, None
        if symbolic is None or self._seen is None:
            return
        given = [v for v in tf.nest.flatten((arguments, options)) if isinstance(v, tf.Tensor | np.ndarray)]
        concrete = keras.tree.map_structure(lambda tensor: _concrete(tensor, given), symbolic)
        if all(value is not None for value in keras.tree.flatten(concrete)):
            x, y = concrete
            self._seen.batch = keep_batch(x, y, None)

    def close(self) -> None:
        """Restore what was patched."""
        self._listens = False
        self._listening.close()
        if self._tries >= TRIES:
            self._calls.clear()
            self._losses.clear()

    def _pass(self, parts: tuple[Any, ...], x: Any, sources: list[Any], gradients: list[Any]) -> TapePass:
        plain = len(self._losses) == 1 and self._losses[0][2] is self._calls_of(parts[-1])
        loss, y, _ = self._losses[0] if plain else (None, None, None)
        seen = TapePass(parts, loss)
        if len(sources) != len(gradients) or not all(isinstance(v, keras.Variable) for v in sources):
            sources, gradients = [], []
        pairs = list(zip(sources, gradients, strict=True))
        seen.unreached = {v.path: int(np.prod(v.shape)) for v, gradient in pairs if gradient is None}
        seen.asked = sum(int(np.prod(v.shape)) for v in sources)
        if tf.executing_eagerly():
            seen.norms = {v.path: _norm(gradient) for v, gradient in pairs if gradient is not None}
            seen.batch = keep_batch(x, y, None)
        else:
            self._symbolic = x, y
        return seen

    def _chain(self) -> tuple[tuple[Any, ...], Any]:
        """Return what led to the loss, first to last, and the input of the first; nothing if that is unclear."""
        if not self._calls:
            return (), None
        wanted = self._losses[-1][2] if self._losses else self._calls[-1][2]
        parts, x = list[Any](), None
        for layer, given, returned in reversed(self._calls):
            if returned is wanted:
                parts.insert(0, layer)
                wanted = x = given
        return (tuple(parts), x) if len(set(map(id, parts))) == len(parts) else ((), None)

    def _calls_of(self, layer: Any) -> Any:
        return next(returned for called, _, returned in reversed(self._calls) if called is layer)

    def _layer_called(self, returned: Any, layer: Any, *arguments: Any, **_options: Any) -> None:
        if len(self._calls) >= CALLS:  # of a loop over layers, or long after a tape that was never asked
            self._tries = TRIES
            self.close()
        elif len(arguments) == 1:
            self._calls.append((layer, arguments[0], returned))

    def _loss_called(self, loss: Any, y_true: Any, y_pred: Any, sample_weight: Any = None) -> None:
        self._losses.append((loss, y_true, y_pred if sample_weight is None else None))


def _norm(gradient: Any) -> float:
    values = tf.convert_to_tensor(gradient)
    return float(tf.norm(tf.cast(values, tf.float32)))


def _concrete(tensor: Any, given: list[Any]) -> Any:
    """Return the argument that a tensor of a traced function stands for; None where it is computed within."""
    inputs = getattr(getattr(tensor, "graph", None), "inputs", [])
    pairs = list(zip(given, inputs, strict=False))
    if len(pairs) < len(given) or not all(place.shape.is_compatible_with(np.shape(v)) for v, place in pairs):
        return None
    return next((value for value, place in pairs if place is tensor), None)

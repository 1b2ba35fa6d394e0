"""Names the function that each output of a model ends in, and pairs outputs with losses and targets."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from diagnostics.collectors.isolation.patching import Patches
from diagnostics.collectors.keras.batch import as_array, batch_facts
from diagnostics.collectors.keras.losses import as_written, classifies, kind_of_loss, output_facts
from diagnostics.collectors.keras.model import activation_of, passes_on
from diagnostics.facts.loss_contracts import Reads
from diagnostics.facts.pipeline import LossFacts, OutputPart, SeveralOutputs

from .kept_outputs import by_name, names_of_outputs

LATEST = 32  # calls of layers that are kept, with what they returned: the last ones make the outputs


class LayerCalls:
    """What the last layers of a model returned in one pass, in any style of model."""

    def __init__(self) -> None:
        # Layer, its first argument, what it returned; a layer within another comes first.
        self._calls: deque[tuple[Any, Any, Any]] = deque(maxlen=LATEST)

    def last_activation(self, output: Any) -> str | None:
        """Name the function that made an output; None where no layer did. Layers that keep it are passed over."""
        for _ in self._calls:
            call = next((call for call in self._calls if call[2] is output), None)
            if call is None:
                return None
            layer, given, _ = call
            if not type(layer).__module__.startswith("keras."):
                return None  # what it does with an attribute of that name is its own
            if not passes_on(layer) or given is output:
                return activation_of(layer)
            output = given
        return None

    @contextmanager
    def recorded(self) -> Iterator[None]:
        """Record the calls within, made by this thread or another; nothing else is kept of them."""
        patches = Patches()
        patches.around(keras.layers.Layer, "__call__", self._around)
        try:
            yield
        finally:
            patches.undo()

    def _around(self, plain: Callable[..., Any]) -> Callable[..., Any]:
        calls = self._calls

        def call(layer: Any, *arguments: Any, **options: Any) -> Any:
            returned = plain(layer, *arguments, **options)
            if tf.is_tensor(returned):
                calls.append((layer, arguments[0] if arguments else None, returned))
            return returned

        return call


def several_outputs(model: keras.Model, prediction: Any, y: Any, calls: LayerCalls) -> SeveralOutputs | None:
    """Return the facts of each output by itself; None where losses, targets and outputs are not paired by name.

    Args:
        model: compiled.
        prediction: several tensors.
        y: targets.
        calls: of the pass that made the prediction.
    """
    names = names_of_outputs(model)
    alone = isinstance(model.loss, str | keras.losses.Loss) or callable(model.loss)
    losses = dict.fromkeys(names, model.loss) if alone else by_name(model.loss, names)
    outputs, targets = by_name(prediction, names), by_name(y, names)
    if losses is None or outputs is None or targets is None or len(names) < 2:
        return None
    parts = [_part(name, outputs[name], targets[name], losses[name], calls) for name in names]
    known = tuple(part for part in parts if part is not None)
    return SeveralOutputs(known) if known else None


def _part(name: str, output: Any, target: Any, loss: Any, calls: LayerCalls) -> OutputPart | None:
    wanted = None if target is None else as_array(target)
    own = not isinstance(loss, str) and not getattr(loss, "__module__", "").startswith("keras.")
    if loss is None or own or wanted is None or not tf.is_tensor(output):
        return None  # what a loss of the user's own makes of its arguments is not known
    last = calls.last_activation(output)
    values = np.asarray(tf.cast(output, tf.float32))
    reads: Reads | None = None
    if classifies(loss) and last not in (None, "softmax", "sigmoid"):
        reads = "logits" if getattr(loss, "from_logits", False) else "probabilities"
    return OutputPart(
        name,
        batch_facts({}, wanted, loss),
        output_facts(values, loss, last, wanted),
        LossFacts(float("nan"), kind_of_loss(loss), reads=reads, name=as_written(loss)),
    )

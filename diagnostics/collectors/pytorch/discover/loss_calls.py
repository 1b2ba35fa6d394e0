"""Records a script's calls of losses in `torch.nn.functional`: their arguments and results."""

from __future__ import annotations

import inspect
import math
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.activations import is_multiplied, last_function
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.loss_match import (
    Recognised,
    absolute_floor,
    binary_floor,
    entropy_floor,
    squared_floor,
)
from diagnostics.facts.pipeline import LossInputFacts, LossKind, Reads
from diagnostics.taps.exchanged_code import Listener, overheard

from .loss_arguments import HEARD, OtherCall

INDEXED = ("cross_entropy", "nll_loss")
KINDS: dict[str, tuple[LossKind, Reads | None]] = {
    "cross_entropy": ("cross_entropy", "logits"),
    "nll_loss": ("cross_entropy", "log_probabilities"),
    "binary_cross_entropy": ("binary_cross_entropy", "probabilities"),
    "binary_cross_entropy_with_logits": ("binary_cross_entropy", "logits"),
    "mse_loss": ("mean_squared_error", None),
    "l1_loss": ("mean_absolute_error", None),
    "smooth_l1_loss": ("other", None),
    "huber_loss": ("other", None),
    "kl_div": ("other", None),
}
"""By the function's name: the kind of loss, and how it interprets the prediction."""

MOST_WEIGHTS = 1000  # of classes, kept
MOST_CALLS = 64  # of losses, recorded at a time
_FUNCTIONS = {name: getattr(F, name) for name in KINDS}  # a script may replace them
_OTHERS = [getattr(F, name) for name in HEARD]
_PARAMETERS = {name: tuple(inspect.signature(function).parameters) for name, function in _FUNCTIONS.items()}
FLOORS = {
    "mean_squared_error": squared_floor,
    "mean_absolute_error": absolute_floor,
    "binary_cross_entropy": binary_floor,
}


Returned = Callable[[Tensor], None]
"""Takes the result of a call."""


@dataclass
class LossCall:
    """One call of a loss.

    Attributes:
        name: of the function.
        prediction: its first argument, detached.
        target: its second.
        options: its other arguments, by name.
        source: the prediction itself.
        made_by: the function that computed it: ``sigmoid``, ``linear``, …; None if not known.
        result: what it returned; None until then.
        node: the number of the result's node in the graph, which outlives the result in `loss_fn(...) * weight`;
            None if it has none.
        value: the result, detached, if it is one number.
        whole: the tensor that the target is a view of; None if it is none.
        multiplied: whether the prediction is something times a single factor; see `is_multiplied`.
    """

    name: str
    prediction: Tensor
    target: Tensor
    options: Mapping[str, Any]
    source: weakref.ref[Tensor]
    made_by: str | None = None
    result: weakref.ref[Tensor] | None = None
    node: int | None = None
    value: Tensor | None = None
    whole: Tensor | None = None
    multiplied: bool = False

    def returned(self, result: Tensor) -> None:
        """Record the result."""
        self.result, self.node = weakref.ref(result), node_number(result.grad_fn)
        self.value = result.detach() if result.numel() == 1 else None

    @property
    def reduction(self) -> str:
        """How the terms become one number; ``none`` if they do not."""
        return str(self.options.get("reduction", "mean"))

    @property
    def ignore_index(self) -> int | None:
        """The label that is ignored; None if the target holds no labels."""
        return int(self.options.get("ignore_index", -100)) if self.indexed else None

    @property
    def indexed(self) -> bool:
        """Whether the target holds class indices."""
        return self.name in INDEXED and not self.target.is_floating_point()

    @property
    def num_classes(self) -> int | None:
        """The size of the class axis, where the target holds class indices."""
        return int(self.prediction.shape[min(1, self.prediction.ndim - 1)]) if self.indexed else None

    @property
    def broadcast(self) -> bool:
        """Whether prediction and target broadcast to more numbers than either has.

        Not with ``reduction="none"`` and equally many axes: a loss over all pairs, as of quantiles, is intended.
        """
        one, other = self.prediction, self.target
        if self.name in INDEXED or one.shape == other.shape:
            return False
        if self.reduction == "none" and one.ndim == other.ndim:
            return False
        try:
            full = torch.broadcast_shapes(one.shape, other.shape)
        except RuntimeError:
            return False
        return bool(full.numel() > max(one.numel(), other.numel()))

    def labels_outside(self) -> bool:
        """Whether a label is out of range. Waits for the device."""
        if not self.indexed or not self.target.numel():
            return False
        counted = self.target[self.target != self.ignore_index]
        return bool(counted.numel()) and bool((counted.min() < 0) | (counted.max() >= self.num_classes))

    def recognised(self, of_classes: bool = False) -> Recognised:
        """Recognise the loss by its name and options, if its weights and reduction are known.

        Args:
            of_classes: whether the target is known to hold classes. Otherwise labels that are all 0, or equal the
                row numbers, may be indices of true pairs.
        """
        kind, reads = KINDS[self.name]
        classes = self.num_classes
        as_read = Recognised(num_classes=classes, reads=reads, broadcast=self.broadcast)
        targets = to_array(self.target)
        if self.reduction not in ("mean", "sum") or targets is None or not targets.size:
            return as_read
        if self.name in INDEXED:
            return as_read if not of_classes and self.may_be_of_pairs() else self._of_indices(as_read, targets)
        weighed = any(self.options.get(name) is not None for name in ("weight", "pos_weight"))
        if kind not in FLOORS or weighed or not targets.ndim:
            return as_read
        terms = self.prediction.numel() if self.reduction == "sum" else 1
        return Recognised(kind, FLOORS[kind](targets) * terms, reads=reads, broadcast=self.broadcast)

    def _of_indices(self, as_read: Recognised, targets: Any) -> Recognised:
        classes = as_read.num_classes
        labels = targets[targets != self.ignore_index]
        if classes is None or not labels.size or labels.min() < 0 or labels.max() >= classes:
            return as_read
        terms = labels.size if self.reduction == "sum" else 1
        floor = entropy_floor(labels, classes, self.options.get("label_smoothing", 0.0)) * terms
        weight: Any = self.options.get("weight")
        weights = None
        if isinstance(weight, Tensor) and weight.shape == (classes,) and weight.numel() <= MOST_WEIGHTS:
            weights = tuple(map(float, weight.detach().cpu()))
        return Recognised("cross_entropy", floor, classes, weight is not None, as_read.reads, weights=weights)

    def inputs(self) -> LossInputFacts:
        """Return what the loss was given. Waits for the device."""
        given, targets = self.prediction.float(), None if self.indexed else self.target.float()
        lowest, highest = map(float, torch.aminmax(given)) if given.numel() else (math.nan, math.nan)
        ends = None if targets is None or not targets.numel() else torch.aminmax(targets)
        return LossInputFacts(
            function=self.name,
            value=math.nan if self.value is None else float(self.value),
            mass=_mass(given),
            lowest_input=lowest,
            highest_input=highest,
            lowest_target=None if ends is None else float(ends.min),
            highest_target=None if ends is None else float(ends.max),
            weighted=any(self.options.get(name) is not None for name in ("weight", "pos_weight")),
        )

    def may_be_of_pairs(self) -> bool:
        """Whether it may be a contrastive loss, whose targets are indices of true pairs and not classes."""
        if not self.indexed or self.prediction.ndim != 2 or len(self.target) < 2:
            return False
        in_order = torch.arange(len(self.target), device=self.target.device)
        return bool((self.target == in_order).all()) or not bool(self.target.any())


def hold_losses() -> Callable[[], None]:
    """Prepare the functions for being heard at any time; return what ends it. See `Overheard.hold`."""
    return overheard.hold([*_FUNCTIONS.values(), *_OTHERS])


class LossCalls:
    """Records calls of losses between `open` and `close`, in the thread that opened it.

    Attributes:
        heard: the calls since `open` whose result may be differentiated, in order.
        other: the first call since then of a loss that is of none of the common kinds; None if there is none.
    """

    def __init__(self, before: Callable[[LossCall], None], guard: FaultGuard) -> None:
        """Prepare; nothing is touched until `open`.

        Args:
            before: called with each call before the loss is computed.
            guard: runs the work at a call.
        """
        self._before, self._guard = before, guard
        self._open: list[Callable[[], None]] = []
        self.heard: list[LossCall] = []
        self.other: OtherCall | None = None

    def open(self, is_mine: Callable[[], bool]) -> None:
        """Record the calls for which `is_mine` returns true."""
        evaluation_calls.close()
        if not self._open:
            common, other = (Listener(hear, is_mine, self._guard) for hear in (self._hear, self._hear_other))
            self._open = [overheard.join(_FUNCTIONS.values(), common), overheard.join(_OTHERS, other)]

    def close(self) -> None:
        """Listen no more, and drop the records."""
        while self._open:
            self._open.pop()()
        self.heard, self.other = [], None

    def _hear_other(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if self.other is None and torch.is_grad_enabled():
            self.other = OtherCall.of(name, arguments, options)

    def _hear(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Returned | None:
        if not torch.is_grad_enabled() or len(self.heard) >= MOST_CALLS:
            return None
        call = _call(name, arguments, options)
        if call is None:
            return None
        self._before(call)
        self.heard.append(call)
        return call.returned


OF_CLASSES = ("cross_entropy", "nll_loss", "binary_cross_entropy_with_logits")
OF_NUMBERS = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")


class EvaluationCalls:
    """Hears the predictions and targets of losses that are computed without gradients.

    It listens from the first pass of an evaluation until the training goes on, while no `LossCalls` do.
    """

    def __init__(self) -> None:
        self._listeners: list[tuple[Callable[[Tensor, Tensor], None], tuple[str, ...]]] = []
        self._open: list[Callable[[], None]] = []
        self._thread = 0
        self._guard = FaultGuard(on_fault=lambda fault: self.close())

    def join(self, listener: Callable[[Tensor, Tensor], None], names: tuple[str, ...]) -> None:
        """Tell a listener of the calls of these losses in this thread; nothing where they are recorded already."""
        if any(listener == other for other, _ in self._listeners):
            return
        functions = [_FUNCTIONS[name] for name in (*OF_CLASSES, *OF_NUMBERS)]
        if not self._open:
            if overheard.is_heard(functions):
                return
            self._thread = threading.get_ident()
            self._open = [overheard.join(functions, Listener(self._hear, self._is_mine, self._guard))]
        self._listeners.append((listener, names))

    def leave(self, listener: Callable[[Tensor, Tensor], None]) -> None:
        """Tell it no more."""
        others = [entry for entry in self._listeners if entry[0] != listener]
        if len(others) < len(self._listeners):
            self._listeners = others
            if not others:
                self.close()

    def close(self) -> None:
        """Stop observing."""
        self._listeners.clear()
        while self._open:
            self._open.pop()()

    def _is_mine(self) -> bool:
        return not torch.is_grad_enabled() and self._thread == threading.get_ident() and not is_own_run()

    def _hear(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        given = dict(zip(_PARAMETERS[name], arguments, strict=False)) | options
        prediction: Any = given.get("input")
        target: Any = given.get("target")
        if type(prediction) is Tensor and type(target) is Tensor and prediction.ndim:
            for listener, names in list(self._listeners):
                if name in names:
                    listener(prediction, target)


evaluation_calls = EvaluationCalls()


def _call(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> LossCall | None:
    given = dict(zip(_PARAMETERS[name], arguments, strict=False)) | options
    prediction, target = given.pop("input", None), given.pop("target", None)
    # A compiler traces with tensors of other types; others behave in their own way.
    if (
        type(prediction) is not Tensor
        or type(target) is not Tensor
        or not prediction.requires_grad
        or prediction.is_meta
    ):
        return None
    if given.get("size_average") is not None or given.get("reduce") is not None:
        given["reduction"] = "other"
    made_by = last_function(prediction)
    source = weakref.ref(prediction)
    scaled = is_multiplied(prediction)
    return LossCall(
        name, prediction.detach(), target.detach(), given, source, made_by, whole=target._base, multiplied=scaled
    )


def node_number(node: Any) -> int | None:
    """Return the number of a node of the graph, unique in its thread; None if it has none."""
    numbered = getattr(node, "_sequence_nr", None)
    return None if numbered is None else int(numbered())


def _mass(prediction: Tensor) -> float | None:
    """Return the sum of exp(prediction) over classes; of the axes that may count them the one nearest to 1."""
    if prediction.ndim < 2 or not prediction.numel():
        return None
    shares = prediction.exp()
    axes = [-1, 1, tuple(range(1, prediction.ndim)), tuple(range(prediction.ndim))]
    sums = [float(shares.sum(axis).median()) for axis in axes if shares.sum(axis).numel()]
    return min(sums, key=lambda one: abs(one - 1))

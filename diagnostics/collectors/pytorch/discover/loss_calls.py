"""Records a script's calls of losses in `torch.nn.functional`: their arguments and results."""

from __future__ import annotations

import inspect
import math
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.activations import function_before, is_multiplied, last_function
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.loss_match import (
    Recognised,
    absolute_floor,
    binary_floor,
    entropy_floor,
    squared_floor,
)
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.loss_call import Argument, LossCall, rows_kept
from diagnostics.facts.loss_contracts import TORCH, LossContract, contract_of, functions_for
from diagnostics.facts.where import Where
from diagnostics.taps.exchanged_code import Listener, overheard

COMMON = functions_for("classes", "shares", "numbers", "distribution")
"""Losses of one prediction and one target, which may be recognised."""

OF_CLASSES = tuple(name for name in functions_for("classes", "shares") if TORCH[name].reads != "probabilities")
OF_NUMBERS = functions_for("numbers")
ONE_WAY = functions_for("classes", "shares")
"""Losses that are lowest at the targets only if the predictions come first."""

MAX_WEIGHTS = 1000  # of classes, kept
MAX_CALLS = 64  # of losses, recorded at a time
_FUNCTIONS = {name: getattr(F, name) for name in COMMON}  # a script may replace them
_OTHERS = {name: getattr(F, name) for name in TORCH if name not in COMMON}
_PARAMETERS = {
    name: tuple(inspect.signature(function).parameters) for name, function in (_FUNCTIONS | _OTHERS).items()
}
FLOORS = {
    "mean_squared_error": squared_floor,
    "mean_absolute_error": absolute_floor,
    "binary_cross_entropy": binary_floor,
}


Returned = Callable[[Tensor], None]
"""Takes the result of a call."""

Heard = Callable[[Tensor, Tensor], Returned | None]
"""Takes prediction and target of a call; returns what takes the mean of its terms, if anything does."""


@dataclass
class RecordedLoss:
    """One call of a loss.

    Attributes:
        name: of the function.
        given: its arguments by name; tensors detached.
        made_by: the function that computed it: ``sigmoid``, ``linear``, …; None if not known.
        made_from: the function that computed what `made_by` was applied to, likewise.
        result: what it returned; None until then.
        node: the number of the result's node in the graph, which outlives the result in `loss_fn(...) * weight`;
            None if it has none.
        value: the result, detached, if it is one number.
        viewed: the tensor that the target is a view of; None if it is not a view.
        unflattened: the shape that the prediction had before it was flattened; None if it was not.
        multiplied: whether the prediction is something times a single factor; see `is_multiplied`.
        where: the line of the script that computes it; None if not known.
        swapped: whether it depends on the model by its target alone.
    """

    name: str
    given: Mapping[str, Any]
    made_by: str | None = None
    made_from: str | None = None
    result: weakref.ref[Tensor] | None = None
    node: int | None = None
    value: Tensor | None = None
    viewed: Tensor | None = None
    unflattened: tuple[int, ...] | None = None
    multiplied: bool = False
    where: Where | None = None
    swapped: bool = False
    _source: weakref.ref[Tensor] | None = None

    @classmethod
    def of(cls, name: str, given: Mapping[str, Any]) -> RecordedLoss:
        """Record a call with these arguments."""
        contract = contract_of(name)
        prediction: Any = given.get(contract.prediction)
        target: Any = given.get(contract.target or "")
        recorded = cls(name, {key: one.detach() if isinstance(one, Tensor) else one for key, one in given.items()})
        if type(prediction) is Tensor:
            recorded._source, recorded.made_by = weakref.ref(prediction), last_function(prediction)
            recorded.made_from = function_before(prediction)
            recorded.multiplied = is_multiplied(prediction)
        recorded.viewed = target._base if type(target) is Tensor else None
        return recorded

    def source(self) -> Tensor | None:
        """Return the prediction itself, while it exists."""
        return None if self._source is None else self._source()

    @property
    def contract(self) -> LossContract:
        """What the function expects."""
        return contract_of(self.name)

    @property
    def prediction(self) -> Tensor:
        """The predictions, detached, of a common loss."""
        prediction: Tensor = self.given[self.contract.prediction]
        return prediction

    @property
    def target(self) -> Tensor:
        """The targets, of a common loss."""
        target: Tensor = self.given[self.contract.target or ""]
        return target

    @property
    def options(self) -> dict[str, Any]:
        """The other arguments."""
        both = self.contract.prediction, self.contract.target
        return {name: one for name, one in self.given.items() if name not in both}

    def returned(self, result: Tensor) -> None:
        """Record the result."""
        self.result, self.node = weakref.ref(result), node_number(result.grad_fn)
        self.value = result.detach() if result.numel() == 1 else None

    @property
    def reduction(self) -> str:
        """How the terms become one number; ``none`` if they do not."""
        return str(self.given.get("reduction", "mean"))

    @property
    def ignore_index(self) -> int | None:
        """The label that is ignored; None if the target holds no labels."""
        return int(self.given.get("ignore_index", -100)) if self.indexed else None

    @property
    def indexed(self) -> bool:
        """Whether the target holds class indices."""
        return self.contract.targets == "classes" and not self.target.is_floating_point()

    @property
    def num_classes(self) -> int | None:
        """The size of the class axis, where the target holds class indices."""
        axis = self.contract.class_axis
        if axis is None or not self.indexed:
            return None
        return int(self.prediction.shape[min(axis, self.prediction.ndim - 1)])

    @property
    def broadcast(self) -> bool:
        """Whether prediction and target broadcast to more numbers than either has.

        Not with ``reduction="none"`` and equally many axes: a loss over all pairs, as of quantiles, is intended.
        """
        one, other = self.prediction, self.target
        if self.contract.targets == "classes" or one.shape == other.shape:
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
        kind = self.contract.kind
        reads = None if kind == "other" else self.contract.reads
        classes = self.num_classes
        as_read = Recognised(num_classes=classes, reads=reads, broadcast=self.broadcast)
        targets = to_array(self.target)
        if self.reduction not in ("mean", "sum") or targets is None or not targets.size:
            return as_read
        if self.contract.targets == "classes":
            return as_read if not of_classes and self.may_be_of_pairs() else self._of_indices(as_read, targets)
        if kind not in FLOORS or self.weighted or not targets.ndim:
            return as_read
        terms = self.prediction.numel() if self.reduction == "sum" else 1
        return Recognised(kind, FLOORS[kind](targets) * terms, reads=reads, broadcast=self.broadcast)

    def _of_indices(self, as_read: Recognised, targets: Any) -> Recognised:
        classes = as_read.num_classes
        labels = targets[targets != self.ignore_index]
        if classes is None or not labels.size or labels.min() < 0 or labels.max() >= classes:
            return as_read
        terms = labels.size if self.reduction == "sum" else 1
        floor = entropy_floor(labels, classes, self.given.get("label_smoothing", 0.0)) * terms
        weight: Any = self.given.get("weight")
        weights = None
        if isinstance(weight, Tensor) and weight.shape == (classes,) and weight.numel() <= MAX_WEIGHTS:
            weights = tuple(map(float, weight.detach().cpu()))
        return Recognised("cross_entropy", floor, classes, weight is not None, as_read.reads, weights=weights)

    @property
    def weighted(self) -> bool:
        """Whether classes or terms are weighed."""
        return any(self.given.get(name) is not None for name in ("weight", "pos_weight"))

    def fact(self, whole: bool = False) -> LossCall:
        """Copy what rules read of the call. Waits for the device.

        Args:
            whole: whether nothing else is differentiated.
        """
        arguments = {
            name: argument for name, one in self.given.items() if (argument := _argument(one)) is not None
        }
        target = self.given.get(self.contract.target or "")
        shapes = {self.contract.prediction: self.unflattened}
        if type(target) is Tensor and self.viewed is not None:
            shapes[self.contract.target or ""] = unflattened(target, self.viewed)
        for name in arguments.keys() & shapes.keys():
            arguments[name] = replace(arguments[name], unflattened=shapes[name])
        return LossCall(
            self.name,
            arguments,
            {
                name: one
                for name, one in self.given.items()
                if one is None or isinstance(one, bool | float | int | str)
            },
            math.nan if self.value is None else float(self.value),
            self.made_by,
            whole,
            self.weighted,
            self.swapped,
        )

    def may_be_of_pairs(self) -> bool:
        """Whether it may be a contrastive loss, whose targets are indices of true pairs and not classes."""
        if not self.indexed or self.prediction.ndim != 2 or len(self.target) < 2:
            return False
        in_order = torch.arange(len(self.target), device=self.target.device)
        return bool((self.target == in_order).all()) or not bool(self.target.any())


def hold_losses() -> Callable[[], None]:
    """Prepare the functions for being heard at any time; return what ends it. See `Overheard.hold`."""
    return overheard.hold([*_FUNCTIONS.values(), *_OTHERS.values()])


class LossRecorder:
    """Records calls of losses between `open` and `close`, in the thread that opened it.

    Attributes:
        heard: the calls since `open` whose result may be differentiated, in order.
        other: the first call since then of a loss that is of none of the common kinds, or with its arguments
            swapped; None if no call was.
    """

    def __init__(self, before: Callable[[RecordedLoss], None], guard: FaultGuard) -> None:
        """Prepare; nothing is touched until `open`.

        Args:
            before: called with each call before the loss is computed.
            guard: runs the work at a call.
        """
        self._before, self._guard = before, guard
        self._open: list[Callable[[], None]] = []
        self.heard: list[RecordedLoss] = []
        self.other: RecordedLoss | None = None

    def open(self, is_mine: Callable[[], bool]) -> None:
        """Record the calls for which `is_mine` returns true."""
        if not self._open:
            common, other = (Listener(hear, is_mine, self._guard) for hear in (self._hear, self._hear_other))
            self._open = [overheard.join(_FUNCTIONS.values(), common), overheard.join(_OTHERS.values(), other)]

    def close(self) -> None:
        """Listen no more, and drop the records."""
        while self._open:
            self._open.pop()()
        self.heard, self.other = [], None

    def _hear_other(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        if self.other is None and torch.is_grad_enabled():
            self.other = RecordedLoss.of(name, _by_name(name, arguments, options))
            self.other.where = script_line()

    def _hear(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Returned | None:
        if not torch.is_grad_enabled() or len(self.heard) >= MAX_CALLS:
            return None
        if (call := _differentiable(name, arguments, options)) is None:
            self.other = self.other or (call := _swapped(name, arguments, options))
            return None if call is None else call.returned
        call.where = script_line()
        self._before(call)
        self.heard.append(call)
        return call.returned


class EvaluationCalls:
    """Hears the predictions and targets of losses that are computed without gradients.

    It listens from the first pass of an evaluation until the training goes on.
    """

    def __init__(self) -> None:
        self._listeners: list[tuple[weakref.WeakMethod[Heard], tuple[str, ...]]] = []
        self._open: list[Callable[[], None]] = []
        self._thread = 0
        self._guard = FaultGuard(on_fault=lambda fault: self.close())

    def join(self, listener: Heard, names: tuple[str, ...]) -> None:
        """Call a method at these losses in this thread, while its object lives."""
        if any(listener == other() for other, _ in self._listeners):
            return
        functions = [_FUNCTIONS[name] for name in (*OF_CLASSES, *OF_NUMBERS)]
        if not self._open:
            self._thread = threading.get_ident()
            self._open = [overheard.join(functions, Listener(self._hear, self._is_mine, self._guard))]
        self._listeners.append((weakref.WeakMethod(listener), names))

    def leave(self, listener: Heard) -> None:
        """Tell it no more."""
        others = [entry for entry in self._listeners if entry[0]() not in (listener, None)]
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

    def _hear(self, name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Returned | None:
        given = _by_name(name, arguments, options)
        prediction: Any = given.get("input")
        target: Any = given.get("target")
        if type(prediction) is not Tensor or type(target) is not Tensor or not prediction.ndim:
            return None
        told = [reference() for reference, names in list(self._listeners) if name in names]
        takers = [taker for one in told if one is not None and (taker := one(prediction, target)) is not None]
        terms, reduction = target.numel(), given.get("reduction", "mean")
        if not takers or not terms or reduction not in ("mean", "sum", "none"):
            return None

        def returned(result: Tensor) -> None:
            mean = result.detach() / terms if reduction == "sum" else result.detach().mean()
            for take in takers:
                take(mean)

        return returned


evaluation_calls = EvaluationCalls()


def hear_labels(
    hear: Callable[[RecordedLoss], Returned | None], is_mine: Callable[[], bool], guard: FaultGuard
) -> Callable[[], None]:
    """Hear the losses of class indices that may be differentiated; see `hear_losses`."""
    names = functions_for("classes")
    return hear_losses(lambda call: hear(call) if call.indexed else None, is_mine, guard, names)


def hear_losses(
    hear: Callable[[RecordedLoss], Returned | None],
    is_mine: Callable[[], bool],
    guard: FaultGuard,
    names: Iterable[str] = COMMON,
) -> Callable[[], None]:
    """Hear the losses that may be differentiated; return what ends it.

    Args:
        hear: takes such a call, and returns what takes its result.
        is_mine: whether to hear a call that is made now.
        guard: runs the work.
        names: of the functions.
    """

    def came(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Returned | None:
        call = _differentiable(name, arguments, options)
        return None if call is None else hear(call)

    return overheard.join([_FUNCTIONS[name] for name in names], Listener(came, is_mine, guard))


def hear_results(
    hear: Callable[[str], Returned | None], is_mine: Callable[[], bool], guard: FaultGuard
) -> Callable[[], None]:
    """Hear the common losses, with or without a gradient; return what ends it.

    Args:
        hear: takes the name of the function, and returns what takes its result.
        is_mine: whether to hear a call that is made now.
        guard: runs the work.
    """
    return overheard.join(_FUNCTIONS.values(), Listener(lambda name, *_: hear(name), is_mine, guard))


def _differentiable(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> RecordedLoss | None:
    """Record a call whose prediction has a gradient; None if it has none, or is no plain tensor."""
    given = _by_name(name, arguments, options)
    prediction: Any = given.get("input")
    # A compiler traces with tensors of other types; others behave in their own way.
    if type(prediction) is not Tensor or type(given.get("target")) is not Tensor:
        return None
    if not prediction.requires_grad or prediction.is_meta:
        return None
    return RecordedLoss.of(name, given)


def _swapped(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> RecordedLoss | None:
    """Record a call of a loss whose target alone has a gradient; None of others, and where that may be meant."""
    given = _by_name(name, arguments, options)
    prediction: Any = given.get("input")
    target: Any = given.get("target")
    if name not in ONE_WAY or type(prediction) is not Tensor or type(target) is not Tensor:
        return None
    if prediction.requires_grad or not target.requires_grad or target.is_meta or prediction.shape != target.shape:
        return None
    call = RecordedLoss.of(name, given)
    call.where, call.swapped = script_line(), True
    return call


def _by_name(name: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> dict[str, Any]:
    given = dict(zip(_PARAMETERS[name], arguments, strict=False)) | options
    if given.get("size_average") is not None or given.get("reduce") is not None:
        given["reduction"] = "other"
    return given


def _argument(given: Any) -> Argument | None:
    """Copy a tensor, or a sequence of numbers; None of anything else."""
    if isinstance(given, tuple | list):
        values = to_array(given)
        return None if values is None else Argument.of(values)
    if type(given) is not Tensor or given.layout != torch.strided:
        return None
    rows = rows_kept(given.shape)
    values = to_array(given if rows is None else given[:rows])
    if values is None or rows is None:
        return None if values is None else Argument.of(values)
    lowest, highest = map(float, torch.aminmax(given))
    return Argument(values, (lowest, highest), len(given))


def unflattened(tensor: Tensor, whole: Tensor) -> tuple[int, ...] | None:
    """Return the shape of `whole`, if `tensor` is the same memory in another shape."""
    if {tensor.layout, whole.layout} != {torch.strided} or tensor.numel() != whole.numel():
        return None
    if tensor.shape == whole.shape:
        return None
    same = tensor.data_ptr() == whole.data_ptr() and tensor.is_contiguous() and whole.is_contiguous()
    return tuple(whole.shape) if same else None


def node_number(node: Any) -> int | None:
    """Return the number of a node of the graph, unique in its thread; None if it has none."""
    numbered = getattr(node, "_sequence_nr", None)
    return None if numbered is None else int(numbered())

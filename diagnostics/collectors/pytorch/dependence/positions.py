"""Finds out whether padding in front of a row, which is masked, changes predictions by shifting its positions."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.internal import is_own_run
from diagnostics.collectors.pytorch.model import parameter_names, uncompiled
from diagnostics.collectors.pytorch.watch.record.captured_pass import copied_tensors, named_tensors
from diagnostics.collectors.shared.arrays import to_array
from diagnostics.collectors.shared.dependence.examples import REL_TOLERANCE
from diagnostics.collectors.shared.dependence.padding import Padded, compare_padding, masked_input
from diagnostics.collectors.shared.dependence.subject import Inputs, Unclear
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import ShiftedPositions
from diagnostics.taps import torch as taps
from diagnostics.taps.tap import subscribe

from .kept_pass import KeptPass, on_host, subject_of
from .subject import Subject

POSITIONS, MASK = "position_ids", "attention_mask"
BATCHES = 4  # of evaluation, the latest; the last one may be small
MOST_BYTES = 2**20  # of each
CACHE = ("past_key_values", "cache_position", POSITIONS)  # of `generate`, which counts positions itself


class EvaluatedTexts:
    """Copies batches of a model without gradients that may be padded texts; they stay on the device.

    Those are the latest ones, and the first of those with the most positions.
    """

    def __init__(self, model: nn.Module, guard: FaultGuard) -> None:
        """Listen until `close`; `guard` runs the work."""
        self._model = weakref.ref(uncompiled(model))
        self._latest: deque[Any] = deque(maxlen=BATCHES)
        self._largest: tuple[int, Any] = 0, None
        self.close = subscribe(guard.attempt, (taps.module_call.before, self._called))

    def kept(self) -> list[KeptPass]:
        """Return those that are padded in front, the latest first."""
        batches = map(_kept, reversed(self._latest))
        return [one for one in batches if _padded_in_front(_arrays(one)) is not None]

    def largest(self) -> KeptPass | None:
        """Return the batch with the most positions, the first of several; None if no batch was kept."""
        size, given = self._largest
        return _kept(given) if size else None

    def _called(self, call: taps.ModuleCall) -> None:
        if torch.is_grad_enabled() or is_own_run() or uncompiled(call.module) is not self._model():
            return
        if any(call.options.get(name) is not None for name in CACHE):
            return
        given = [tensor for _, tensor in named_tensors((call.arguments, call.options))]
        shapes = [tensor.shape for tensor in given if tensor.ndim == 2 and not tensor.is_floating_point()]
        if len(set(shapes)) == len(shapes) or sum(tensor.nbytes for tensor in given) > MOST_BYTES:
            return
        if all(type(tensor) is Tensor and tensor.layout is torch.strided for tensor in given):
            self._latest.append(copied_tensors((call.arguments, call.options)))
            positions = max(shape.numel() for shape in shapes)
            if positions > self._largest[0]:
                self._largest = positions, self._latest[-1]


def compare_positions(
    model: nn.Module, evaluated: KeptPass, trained: KeptPass, deadline: float
) -> ShiftedPositions:
    """Compare predictions for padded rows with those for the same rows without their padding.

    Args:
        model: that was trained; it is copied.
        evaluated: a batch of it without gradients, padded in front.
        trained: a batch of its training.
        deadline: of `time.monotonic`.

    Raises:
        Unclear: training is padded in front as well, the padding is read, or no predictions can be compared.
        OutOfTime: the time is over.
    """
    if _padded_in_front(_arrays(trained)) is not None:
        raise Unclear("training is padded in front as well")
    subject = subject_of(model, evaluated, deadline)
    padded = _padded_in_front(subject.inputs)
    if padded is None:
        raise Unclear("the evaluation is not padded in front")
    copied = _Reading(subject, padded)
    if copied.reads_padding():
        raise Unclear("the model reads the padding")
    found = copied.compared()
    if found.changed and not copied.changes_at_end():
        raise Unclear("the amount of padding changes the predictions, not its place")
    reader = _reader_of_positions(subject.model)
    counted = None
    if found.changed and reader is not None:
        with _with_positions(reader[1]):
            counted = copied.compared().changed
    return ShiftedPositions(
        input=padded.name,
        rows=found.rows,
        changed=found.changed,
        longest=int(padded.width - padded.lengths.min()),
        reader=None if reader is None else type(reader[1]).__name__,
        with_positions=counted,
    )


class _Reading:
    """A copy of the model, and its batch."""

    def __init__(self, subject: Subject, padded: Padded) -> None:
        self._subject, self._padded = subject, padded
        self._answers = self._call(subject.inputs)

    def reads_padding(self) -> bool:
        """Whether other tokens in the place of the padding change a prediction."""
        name, words = self._padded.name, self._padded.words
        tokens = self._subject.inputs[name]
        others = np.where(words, tokens, tokens[:, -1:])
        return self._differs(self._call({**self._subject.inputs, name: others}))

    def changes_at_end(self) -> bool:
        """Whether predictions change if the padding is moved to the end of the rows."""
        words = self._padded.words
        order = np.argsort(~words, axis=1, kind="stable")
        moved = {
            name: np.take_along_axis(array, order, 1) if array.shape == words.shape else array
            for name, array in self._subject.inputs.items()
        }
        main = self._subject.ask(moved).main
        if main.ndim == 3 and main.shape[1] == words.shape[1]:
            main = main[np.arange(len(words)), self._padded.lengths - 1]
        return main.shape == self._answers.shape and self._differs(main)

    def compared(self) -> Any:
        """Compare the predictions with padding with those without.

        Raises:
            Unclear: there are none for rows of several lengths.
        """
        classes = np.zeros(len(self._answers), dtype=np.int64) if self._answers.shape[-1] > 1 else None
        removed = compare_padding(self._call, self._subject.inputs, self._padded, classes).removed
        if removed is None or removed.moved:
            raise Unclear("needs predictions for rows of different lengths")
        return removed

    def _differs(self, answers: Array) -> bool:
        return bool(np.abs(answers - self._answers).max() > REL_TOLERANCE * np.abs(self._answers).max())

    def _call(self, given: Inputs) -> Array:
        """Return one prediction for each row: of several, that for its last token."""
        main = self._subject.ask(given).main
        length = given[self._padded.name].shape[1]
        return main[:, -1] if main.ndim == 3 and main.shape[1] == length else main


def _kept(given: Any) -> KeptPass:
    return KeptPass(on_host(given), None, None, False, None, False)


def _padded_in_front(inputs: Inputs) -> Padded | None:
    """Return the tokens whose mask leaves out positions at their beginning alone."""
    for mask in inputs.values():
        padded = masked_input({name: one for name, one in inputs.items() if one is not mask}, mask)
        if padded is not None and padded.words[:, -1].all():
            return padded
    return None


def _arrays(kept: KeptPass) -> dict[str, Array]:
    found = {name: to_array(tensor) for name, tensor in named_tensors(kept.inputs)}
    return {name: array for name, array in found.items() if array is not None}


def _reader_of_positions(model: nn.Module) -> tuple[str, nn.Module] | None:
    """Return the outermost module that takes the positions of its tokens, with its path."""
    taking = ((path, one) for path, one in model.named_modules() if {POSITIONS, MASK} <= {*parameter_names(one)})
    return next(taking, None)


@contextmanager
def _with_positions(module: nn.Module) -> Iterator[None]:
    """Let a module count the positions of each row from its first word."""

    def before(module: nn.Module, arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
        place = parameter_names(module).index(MASK)
        mask = options.get(MASK, arguments[place] if len(arguments) > place else None)
        if not isinstance(mask, Tensor) or mask.ndim != 2:
            return None
        positions = (mask.long().cumsum(-1) - 1).clamp(min=0)
        return arguments, {**options, POSITIONS: positions}

    hook = module.register_forward_pre_hook(before, with_kwargs=True)
    try:
        yield
    finally:
        hook.remove()

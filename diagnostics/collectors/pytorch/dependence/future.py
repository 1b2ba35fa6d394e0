"""Finds out whether a language model's answer at a position depends on the token that it is to predict."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.facts.dependence import FutureFacts

from .examples import Unclear
from .subject import Subject

ROWS = 8  # examples that are run
LEAST_LENGTH = 4
LEAST_COMPARED = 8  # targets that must equal the next token
LEAST_KINDS = 3  # of tokens among these
COPIED = 0.5  # share of targets that may equal the token at their own position: more, and it repeats
PLACES = (0.25, 0.5, 0.75, 1.0)  # of the positions that count


def compare_future(subject: Subject) -> FutureFacts:
    """Replace one token, and compare the answer at the position before, which is to predict it.

    Raises:
        Unclear: the model is not known to predict the next token, or may read ahead on purpose.
        OutOfTime: the time is over.
    """
    name, axis, counted = _tokens(subject)
    tokens = subject.inputs[name]
    length, batch = int(tokens.shape[axis]), int(tokens.shape[1 - axis])
    rows = next((r for r in range(min(ROWS, batch), 1, -1) if r != length), 0)
    if rows < 2:
        raise Unclear("the batch holds a single text")
    inputs = {
        given: t.narrow(1 - axis, 0, rows) if t.ndim > 1 and t.shape[:2] == tokens.shape else t
        for given, t in subject.inputs.items()
    }
    if any(t.ndim and t is subject.inputs[given] and t.shape[0] == batch for given, t in inputs.items()):
        raise Unclear("it takes further inputs for each text")
    if length in [n for given, t in inputs.items() for n in t.shape[2:]]:
        raise Unclear("another axis of the inputs has as many positions")
    with _summaries_seen(subject.model, rows, length) as summaries:
        first = subject.ask(inputs)
    if summaries:
        raise Unclear(f"{summaries[0]} sums up a text, as an autoencoder does, which may read all of it")
    again = subject.ask(inputs, seed=1)
    before = _by_position(first.main, rows, length, axis)
    if not torch.equal(first.main, again.main):
        raise Unclear("the predictions are random in evaluation mode")
    if sum(by_position_or_none(t, rows, length, axis) is not None for t in first.others):
        raise Unclear("it returns several tensors with a prediction for each position")
    changes = []
    predicted = counted.narrow(1 - axis, 0, rows).all(1 - axis).nonzero().flatten().tolist()
    if not predicted:
        raise Unclear("the loss leaves out a part of each position")
    for position in sorted({predicted[int(part * (len(predicted) - 1))] for part in PLACES}):
        after = _by_position(subject.ask(_with_other(inputs, name, axis, position + 1)).main, rows, length, axis)
        change = float((after.select(axis, position) - before.select(axis, position)).abs().max())
        changes.append((change, position))
    change, position = max(changes)
    if change != change or not bool(before.isfinite().all()):
        raise Unclear("the predictions are not finite")
    spread = float(before.flatten(0, 1).std(0).square().mean().sqrt())
    past = None
    if position:
        earlier = inputs
        for place in range(position):
            earlier = _with_other(earlier, name, axis, place)
        after = _by_position(subject.ask(earlier).main, rows, length, axis)
        past = float((after.select(axis, position) - before.select(axis, position)).abs().max())
    return FutureFacts(change, spread, position, length, name, past)


def _tokens(subject: Subject) -> tuple[str, int, Tensor]:
    """Return the only input whose next tokens are the targets, its axis of positions, and which ones count."""
    if not subject.predicts_tokens or subject.target is None or subject.target.is_floating_point():
        raise Unclear("the loss is not known to be a cross entropy over next tokens")
    found = [
        (name, axis, counted)
        for name, tensor in subject.inputs.items()
        for axis in (1, 0)
        if tensor.ndim == 2 and not tensor.is_floating_point() and tensor.dtype != torch.bool
        if (counted := _counted(tensor, subject.target, axis, subject.ignore_index)) is not None
    ]
    if len(found) != 1:
        raise Unclear("the targets are not the next tokens of one of the inputs")
    return found[0]


def _counted(tokens: Tensor, target: Tensor, axis: int, ignore_index: int | None) -> Tensor | None:
    """Return which next tokens the loss counts, one fewer than there are tokens; None if they are no targets."""
    length = tokens.shape[axis]
    if length < LEAST_LENGTH:
        return None
    following, here = tokens.narrow(axis, 1, length - 1), tokens.narrow(axis, 0, length - 1)
    if target.numel() == tokens.numel():
        wanted = target.reshape(tokens.shape).narrow(axis, 0, length - 1)
    elif target.numel() == following.numel():
        wanted = target.reshape(following.shape)
    else:
        return None
    counted = torch.ones_like(wanted, dtype=torch.bool) if ignore_index is None else wanted != ignore_index
    if int(counted.sum()) < LEAST_COMPARED or wanted[counted].unique().numel() < LEAST_KINDS:
        return None
    same = bool((wanted == following)[counted].all())
    return counted if same and float((wanted == here)[counted].float().mean()) < COPIED else None


def _with_other(inputs: dict[str, Tensor], name: str, axis: int, position: int) -> dict[str, Tensor]:
    """Replace the tokens at a position by others of the same batch."""
    tokens = inputs[name].clone()
    there = tokens.select(axis, position)
    kinds = tokens.unique()
    following = (torch.searchsorted(kinds, there.contiguous()) + 1) % kinds.numel()
    there.copy_(kinds[following])
    return {**inputs, name: tokens}


def _by_position(main: Tensor, rows: int, length: int, axis: int) -> Tensor:
    """Return the answers in the layout of the tokens, (rows, length, …) or (length, rows, …).

    Raises:
        Unclear: there is no such answer for each position.
    """
    found = by_position_or_none(main, rows, length, axis)
    if found is None:
        raise Unclear("it gives no answer for each position")
    return found


def by_position_or_none(main: Tensor, rows: int, length: int, axis: int) -> Tensor | None:
    """Return the same; None if there is no such answer."""
    layout = (rows, length) if axis == 1 else (length, rows)
    if main.ndim == 3 and main.shape[:2] == layout:
        return main
    if main.ndim == 3 and main.shape[::2] == layout:  # (rows, classes, length)
        return main.transpose(1, 2)
    if main.ndim == 2 and main.shape[0] == rows * length:
        return main.reshape(*layout, -1)
    return None


@contextlib.contextmanager
def _summaries_seen(model: nn.Module, rows: int, length: int) -> Iterator[list[str]]:
    """List the layers within that return one vector for each text, or begin from a given state."""
    found: list[str] = []

    def called(module: nn.Module, args: Any, output: Any) -> None:
        first = output[0] if isinstance(output, tuple | list) and output else output
        begun = isinstance(module, nn.RNNBase) and len(args) > 1 and args[1] is not None
        if not isinstance(first, Tensor) or first.ndim < 2:
            return
        counted = {length, rows * length}
        if begun or (rows in first.shape[:2] and not counted.intersection(first.shape)):
            found.append(type(module).__name__)

    handles = [m.register_forward_hook(called) for m in model.modules() if not any(m.children())]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()

"""Finds out whether any answer of a model depends on each of its inputs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from .examples import Axis, Unclear, counts_examples, cut, replaced
from .subject import Inputs, Subject, largest_change

NOISE = 0.05  # added to each weight, times its size: opens a gate that starts at zero
LEAST_STEPS = 4  # of a sequence
SEEDS = (0, 1, 2)  # of runs in training mode, where an input may be used now and then, as in teacher forcing


def compare_inputs(subject: Subject, axis: Axis) -> tuple[dict[str, float], tuple[str, ...]]:
    """Replace each input alone by that of other examples.

    Returns:
        The largest change of any answer; and the inputs of which that of the first example alone changes answers.

    An input is replaced in evaluation mode first; if nothing changes, in training mode, where it may be used
    alone, and with other weights, since a branch that starts at zero passes nothing on yet.

    Raises:
        Unclear: fewer than two inputs can be tested.
        OutOfTime: the time is over.
    """
    size = axis.sizes[0]
    first = cut(subject.inputs, axis, torch.arange(size), axis.whole)
    others = cut(subject.inputs, axis, replaced(axis), axis.whole)
    tested = [
        name
        for name, tensor in subject.inputs.items()
        if counts_examples(tensor, axis.of_inputs, axis.whole) and not torch.equal(first[name], others[name])
    ]
    if len(tested) < 2:
        raise Unclear("needs two inputs that differ between examples")
    before = subject.ask(first)
    changes = {name: largest_change(before, subject.ask({**first, name: others[name]})) for name in tested}
    in_use = [name for name, change in changes.items() if change > 0]  # with these weights, in evaluation mode
    for name in [name for name, change in changes.items() if change == 0]:
        if name in subject.tested:
            changes[name] = _change_at_all(subject, first, {**first, name: others[name]})
        else:
            del changes[name]
    but_first = cut(subject.inputs, axis, replaced(axis, 0), axis.whole)
    of_first = [
        name
        for name in in_use
        if name in subject.tested
        and not torch.equal(first[name], but_first[name])
        and largest_change(before, subject.ask({**first, name: but_first[name]})) == 0
    ]
    return changes, tuple(of_first)


def compare_steps(subject: Subject, axis: Axis) -> tuple[int | None, int | None]:
    """Replace all steps of a sequence but one, of a model with recurrent layers that read forward only.

    Returns:
        The number of steps, where those after the first change no answer, None where they do; and the same of
        those before the last, which a hidden state that is recreated at each step never reaches.

    Raises:
        Unclear: this cannot be tested.
        OutOfTime: the time is over.
    """
    layers = [m for m in subject.model.modules() if isinstance(m, nn.RNNBase | nn.RNNCellBase)]
    if not layers or any(isinstance(layer, nn.RNNBase) and layer.bidirectional for layer in layers):
        raise Unclear("needs recurrent layers that read forward only")
    time = 1 - axis.of_inputs
    first = cut(subject.inputs, axis, torch.arange(axis.sizes[0]), axis.whole)
    named = [
        name
        for name, tensor in first.items()
        if tensor.ndim > 1 and counts_examples(tensor, axis.of_inputs, axis.sizes[0])
    ]
    length = {first[name].shape[time] for name in named}
    if len(named) != 1 or len(first) != 1 or min(length) < LEAST_STEPS:
        raise Unclear(f"needs a single input of {LEAST_STEPS} steps or more")
    if axis.answers[0].main.numel() >= axis.sizes[0] * min(length):
        raise Unclear("needs one prediction for a sequence")
    (name,), (steps,) = named, length
    others = cut(subject.inputs, axis, replaced(axis), axis.whole)[name]
    alone = [_only(subject, first, name, others, time, step) for step in (0, steps - 1)]
    return steps if alone[0] else None, steps if alone[1] else None


def _only(subject: Subject, first: Inputs, name: str, others: Tensor, time: int, step: int) -> bool:
    """Whether the answers depend on one step of a sequence, and on no other; False where that cannot be seen."""
    without, within = others.clone(), first[name].clone()
    without.select(time, step).copy_(first[name].select(time, step))
    within.select(time, step).copy_(others.select(time, step))
    if any(torch.equal(one, first[name]) for one in (without, within)):  # such as a last step that is padding
        return False
    before = subject.ask(first)
    if largest_change(before, subject.ask({name: within})) == 0 or largest_change(
        before, subject.ask({name: without})
    ):
        return False
    return not _change_at_all(subject, first, {name: without})


def _change_at_all(subject: Subject, first: Inputs, other: Inputs) -> float:
    with restored(subject.model):
        for seed in SEEDS:
            before = subject.ask(first, training=True, seed=seed)
            if change := largest_change(before, subject.ask(other, training=True, seed=seed)):
                return change
        add_noise(subject.model)
        return largest_change(subject.ask(first), subject.ask(other))


def add_noise(model: nn.Module) -> None:
    """Change each weight by a little, relative to the size of its kind."""
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.is_floating_point():
                noise = torch.randn(parameter.shape, generator=generator).to(parameter)
                size = parameter.std() if parameter.numel() > 1 else parameter.abs()
                parameter.add_(noise * NOISE * (size if float(size) > 0 else 1.0))


@contextlib.contextmanager
def restored(model: nn.Module) -> Iterator[None]:
    """Put parameters and buffers back to what they were."""
    tensors = [*model.parameters(), *model.buffers()]
    kept = [tensor.detach().clone() for tensor in tensors]
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, saved in zip(tensors, kept, strict=True):
                tensor.copy_(saved)

"""Finds out whether a model of several layers is linear in its input, as where activations were forgotten."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.shared.dependence.linearity import FACTOR, as_linear, is_half
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import LinearFacts

from .examples import Axis, Unclear, cut, replaced
from .inputs import add_noise, restored
from .subject import Inputs, Subject

MOST_LAYERS = 16


def find_linear(subject: Subject, axis: Axis) -> LinearFacts | None:
    """Follow the answers along lines between examples; None where they are no linear function of the input.

    Raises:
        Unclear: the input is not one tensor of floating point, or the layers do not run once each.
        OutOfTime: the time is over.
    """
    if len(subject.inputs) != 1:
        raise Unclear("needs a model with one input")
    name, whole = next(iter(subject.inputs.items()))
    if not whole.is_floating_point() or whole.ndim < 2:
        raise Unclear("needs an input of numbers, not of tokens")
    one = cut(subject.inputs, axis, torch.arange(axis.sizes[0]), axis.whole)[name]
    other = cut(subject.inputs, axis, replaced(axis), axis.whole)[name]
    layers = _layers_run(subject, {name: one})
    if len(layers) < 2:
        return None

    def ask(place: float) -> Array:
        answer: Array = subject.ask({name: one + place * (other - one)}).main.double().numpy()
        return answer

    if as_linear(ask) is None:
        return None
    with restored(subject.model):
        add_noise(subject.model)  # opens a gate that starts at zero
        paths = list(layers)
        with _scaled(layers[paths[0]], FACTOR), _scaled(layers[paths[-1]], 1 / FACTOR):
            undo = as_linear(ask)
        if undo is None:
            return None

        def halved(path: str) -> Callable[[float], Array]:
            def ask_again(place: float) -> Array:
                with _scaled(layers[path], 0.5):
                    return ask(place)

            return ask_again

        in_a_row = [path for path in paths if is_half(ask, halved(path), undo)]
    if len(in_a_row) < 2:
        return None
    widths = [_outputs(layers[path]) for path in in_a_row]
    shown = tuple(f"{path} ({type(layers[path]).__name__})" for path in in_a_row)
    return LinearFacts(shown, min(widths), one[0].numel(), widths[-1])


def _layers_run(subject: Subject, inputs: Inputs) -> dict[str, nn.Module]:
    """Return the layers with a matrix of weights, by name, in the order in which they run.

    Raises:
        Unclear: one runs several times, or there are too many.
    """
    seen: list[str] = []
    handles = [
        module.register_forward_hook(_noted(seen, path))
        for path, module in subject.model.named_modules()
        if isinstance(weight := getattr(module, "weight", None), Tensor) and weight.ndim >= 2
    ]
    try:
        subject.ask(inputs)
    finally:
        for handle in handles:
            handle.remove()
    if len(set(seen)) < len(seen) or len(seen) > MOST_LAYERS:
        raise Unclear("a layer runs several times, or there are many")
    return {path: subject.model.get_submodule(path) for path in seen}


def _noted(seen: list[str], path: str) -> Any:
    def hook(*_: Any) -> None:
        seen.append(path)

    return hook


def _outputs(layer: nn.Module) -> int:
    weight: Any = layer.weight
    return int(weight.shape[1] if getattr(layer, "transposed", False) else weight.shape[0])


@contextlib.contextmanager
def _scaled(layer: nn.Module, factor: float) -> Iterator[None]:
    weight: Any = layer.weight
    kept = weight.detach().clone()
    with torch.no_grad():
        weight.mul_(factor)
    try:
        yield
    finally:
        with torch.no_grad():
            weight.copy_(kept)

"""Histograms of the weights and the gradients, by layer."""

from __future__ import annotations

import torch
from torch import Tensor

from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.collectors.shared.over_time.histogram import LAYERS, histogram_of, stride_for
from diagnostics.facts.over_time import Histogram, LayerHistograms


def histograms(layers: Layers, held: set[int], step: int) -> LayerHistograms:
    """Measure the layers as they are now. Synchronises with the device.

    Args:
        layers: of the model.
        held: the numbers of the parameters whose gradients count: those of the optimizer that is about to step.
        step: steps made so far.
    """
    weights: dict[str, list[Tensor]] = {}
    gradients: dict[str, list[Tensor]] = {}
    for number, parameter in layers.everything():
        place = int(layers.of_parameter[number])
        if place >= LAYERS:
            continue
        name = layers.names[place]
        weights.setdefault(name, []).append(parameter)
        if number in held and parameter.grad is not None:
            gradients.setdefault(name, []).append(parameter.grad)
    return LayerHistograms(step, _by_layer(weights), _by_layer(gradients))


def _by_layer(values: dict[str, list[Tensor]]) -> dict[str, Histogram]:
    found = {name: _histogram(parts) for name, parts in values.items()}
    return {name: histogram for name, histogram in found.items() if histogram is not None}


def _histogram(parts: list[Tensor]) -> Histogram | None:
    dense = [local(part.detach()) for part in parts]
    flat = [part.reshape(-1) for part in dense if part.layout is torch.strided and part.is_floating_point()]
    size = sum(part.numel() for part in flat)
    if not size:
        return None
    stride = stride_for(size)
    return histogram_of([part[::stride].cpu().double().numpy() for part in flat], size)

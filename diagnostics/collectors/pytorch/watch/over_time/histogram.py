"""Histograms of the weights and the gradients, by layer."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.collectors.pytorch.watch.record.norms import Layers
from diagnostics.facts.over_time import QUANTILES, Histogram, LayerHistograms

BINS = 32
VALUES = 2**16  # of a layer that are read, evenly spaced: the quantiles of more differ in the third digit
LAYERS = 64  # the first ones of a larger model: a page with more is not read


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
    stride = -(-size // VALUES)
    read = torch.cat([part[::stride].cpu().double() for part in flat]).numpy()
    finite = read[np.isfinite(read)]
    if not len(finite):
        return None
    low, high = float(finite.min()), float(finite.max())
    if high - low <= 1e-12 * max(abs(low), abs(high)):  # all alike, as a bias before the first step
        width = 0.5 * max(abs(low), 1e-3)
        low, high = low - width, high + width
    counts, edges = np.histogram(finite, BINS, (low, high))
    return Histogram(
        edges=edges,
        counts=counts,
        quantiles=np.quantile(finite, QUANTILES),
        total=float(finite.sum()),
        squares=float(np.square(finite).sum()),
        not_finite=len(read) - len(finite),
        share=len(read) / size,
    )

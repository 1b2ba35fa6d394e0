"""Computes gradient norms on the device, in a few fused operations for all parameters."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.local_tensors import local
from diagnostics.collectors.pytorch.loss_graph import MOST_NODES, graph_nodes
from diagnostics.facts.array import Array
from diagnostics.facts.training import OF_RECURRENT

Item = TypeVar("Item")
RECURRENT = re.compile(r"_l(\d+)(_reverse)?$")  # weight_ih_l0, bias_hh_l1_reverse


class Layers:
    """The trainable parameters of a model, and the modules that they belong to.

    Of a DTensor, as FSDP2 makes them, all that is measured is of the shard of this process.

    Attributes:
        parameters: by name.
        names: of the layers: the modules that own a parameter, in order. Of a recurrent module each of its layers
            and directions is one.
        of_parameter: integers (parameters,), the number of its layer for each.
    """

    def __init__(self, model: nn.Module) -> None:
        self.parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
        stacks = {path for path, module in model.named_modules() if _has_parts(module)}
        owners = [_owner(name, stacks, type(model).__name__) for name in self.parameters]
        self.names = tuple(dict.fromkeys(owners))
        self.of_parameter = np.array([self.names.index(owner) for owner in owners], dtype=np.int64)
        self._numbers = {id(p): number for number, p in enumerate(self.parameters.values())}
        self._places: dict[tuple[int, ...], tuple[Array, Array]] = {}
        dtypes = {p.dtype for p in self.parameters.values()}
        # The norm of a half-precision tensor soon passes the largest number of its own dtype.
        half = bool(dtypes & {torch.float16, torch.bfloat16}) and torch.float64 not in dtypes
        self.norm_dtype = torch.float32 if half else None

    def held_by(self, optimizer: Any) -> list[tuple[int, nn.Parameter]]:
        """List the parameters of the model that an optimizer holds, with their numbers."""
        held = {id(p): p for group in optimizer.param_groups for p in group["params"] if id(p) in self._numbers}
        return sorted(((self._numbers[key], p) for key, p in held.items()), key=lambda pair: pair[0])

    def everything(self) -> list[tuple[int, nn.Parameter]]:
        """List all of them with their numbers."""
        return list(enumerate(self.parameters.values()))

    def gradients(self, held: list[tuple[int, nn.Parameter]]) -> tuple[list[Tensor], tuple[int, ...]]:
        """Return the dense gradients that are there, and the numbers of their parameters."""
        found, which = [], []
        for number, parameter in held:
            gradient = parameter.grad
            if gradient is not None and gradient.layout is torch.strided:
                found.append(gradient if type(gradient) is Tensor else local(gradient))
                which.append(number)
        return found, tuple(which)

    def norms(self, values: list[Tensor]) -> Tensor:
        """Return the L2 norms (k,) of tensors; on the device of the first, if there are several."""
        norms = torch._foreach_norm(values, 2, dtype=self.norm_dtype)
        try:
            return torch.stack(norms)
        except RuntimeError:  # a model on several devices
            return torch.stack([norm.to(norms[0].device, torch.float32, non_blocking=True) for norm in norms])

    def norms_on_host(self, values: list[Tensor]) -> list[float]:
        """Return the same as numbers: on a CPU, where there is nothing to wait for."""
        return [norm.item() for norm in torch._foreach_norm(values, 2, dtype=self.norm_dtype)]

    def over_layers(self, norms: Array, which: tuple[int, ...]) -> Array:
        """Combine norms (..., k) of parameters into norms (..., layers). May overflow, under `np.errstate`."""
        if which not in self._places:
            layers = self.of_parameter[list(which)]
            # In order, as the parameters of a module stand together.
            starts = np.flatnonzero(np.diff(layers, prepend=-1))
            self._places = {which: (starts, layers[starts])}  # one: it changes seldom
        starts, layers = self._places[which]
        squares = np.zeros((*norms.shape[:-1], len(self.names)))
        if len(starts):
            squares[..., layers] = np.add.reduceat(np.square(norms, dtype=np.float64), starts, axis=-1)
        return np.sqrt(squares)

    def sizes(self) -> Array:
        """Return integers (parameters,): the scalars in each."""
        return np.array([local(p).numel() for p in self.parameters.values()])


def beside_outputs(outputs: list[Tensor], layers: Layers) -> frozenset[int]:
    """Return the numbers of the parameters that the outputs do not come from.

    What reads them stands between the outputs and the loss, so that their gradients of a backward pass are there
    before the first gradient of an output is: they say nothing about the pass before. None of them is returned
    where the graph is not known to its end, as inside a checkpoint.
    """
    nodes = graph_nodes(*outputs)
    read = {id(node.variable) for node in nodes if hasattr(node, "variable")}
    beside = frozenset(number for number, parameter in layers.everything() if id(parameter) not in read)
    return frozenset() if len(beside) == len(layers.parameters) or len(nodes) >= MOST_NODES else beside


def _owner(name: str, stacks: set[str], whole: str) -> str:
    """Return the layer of a parameter: ``encoder.linear``, ``encoder.lstm layer 2, backward``.

    Args:
        name: of the parameter.
        stacks: the paths of recurrent modules with several parts.
        whole: the name of the model itself.
    """
    owner, _, own = name.rpartition(".")
    found = RECURRENT.search(own) if owner in stacks else None
    if found is None:
        return owner or whole
    return f"{owner or whole}{OF_RECURRENT}{int(found[1]) + 1}{', backward' if found[2] else ''}"


def _has_parts(module: nn.Module) -> bool:
    return isinstance(module, nn.RNNBase) and (module.num_layers > 1 or module.bidirectional)


def taken(pending: list[Item]) -> list[Item]:
    """Empty a list that another thread may be appending to, and return what was in it."""
    found = pending[:]
    del pending[: len(found)]
    return found


def to_host(values: Mapping[int, Tensor]) -> dict[int, Array]:
    """Copy small tensors of any shape to the host, one copy per device and dtype."""
    groups: dict[tuple[torch.device, torch.dtype], list[int]] = {}
    arrays: dict[int, Array] = {}
    for key, value in values.items():
        if value.is_cpu and value.dtype is not torch.bfloat16:
            arrays[key] = value.detach().numpy()
        else:
            groups.setdefault((value.device, value.dtype), []).append(key)
    for (_, dtype), keys in groups.items():
        whole = torch.cat([values[key].detach().reshape(-1) for key in keys])
        if dtype.is_floating_point and whole.element_size() < 4:
            whole = whole.float()
        host = whole.cpu().numpy()
        start = 0
        for key in keys:
            size = values[key].numel()
            arrays[key] = host[start : start + size].reshape(tuple(values[key].shape))
            start += size
    return arrays

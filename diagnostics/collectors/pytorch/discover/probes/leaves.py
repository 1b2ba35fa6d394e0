"""Finds parameters that the loss depends on and that no optimizer holds."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import is_lazy

from diagnostics.collectors.pytorch.discover.step_probe import StepProbe
from diagnostics.facts.loss_graph import LeafFacts

MAX_INNER = 4096  # calls of layers within one forward pass that are remembered
DEPTH = 2  # of lists in lists
ENTRIES = 256  # of one list
_OF_PYTORCH = frozenset(vars(nn.Module()))
Vanished = tuple[tuple[str, weakref.ref[Tensor]], ...]


class InnerCalls:
    """Remembers which layers are called within the first forward pass of a model, by weak references.

    Of a layer its own matrices count: a norm that is made on the spot begins as the identity, and serves as a
    function. So does a random layer ahead of all trained ones: an augmentation.
    """

    def __init__(self) -> None:
        self._called: list[tuple[weakref.ref[nn.Module], str, list[weakref.ref[Tensor]]]] = []

    def add(self, module: nn.Module, arguments: tuple[Any, ...], *_: Any) -> None:
        """Remember a call that is about to run, if its input was computed from parameters."""
        if len(self._called) >= MAX_INNER or isinstance(module, torch.jit.ScriptModule):
            return
        there = [p for p in module._parameters.values() if p is not None and not is_lazy(p)]
        matrices = [p for p in there if p.requires_grad and p.ndim > 1]
        if matrices and any(isinstance(given, Tensor) and given.grad_fn is not None for given in arguments):
            own = [weakref.ref[Tensor](matrix) for matrix in matrices]
            self._called.append((weakref.ref(module), type(module).__name__, own))

    def gone(self) -> Vanished:
        """Return the matrices of layers that exist no more, each with its layer's class, and forget all calls."""
        called, self._called = self._called, []
        return tuple((name, matrix) for module, name, own in called if module() is None for matrix in own)


@dataclass
class Reach:
    """What a loss depends on.

    Attributes:
        leaves: of its graph, by identity.
        feeding: modules that were called before, if the inputs of the model depend on parameters.
        following: modules that were called later, with inputs that depend on parameters.
        vanished: matrices of layers that the model made in the pass and let go of, each with its layer's class.
    """

    leaves: Mapping[int, Tensor]
    feeding: tuple[nn.Module, ...] = ()
    following: tuple[nn.Module, ...] = ()
    vanished: Vanished = ()


class Leaves(StepProbe):
    """Compares the leaves of the loss with what optimizers hold."""

    stage = "optimizer step"

    def facts(self) -> Iterator[LeafFacts]:
        """Yield what the loss depends on."""
        if (reach := self.subject.seen.reach) is not None:
            yield _compared(self.subject.model, reach, self.subject.held)


def _compared(model: nn.Module, reach: Reach, held: Collection[int]) -> LeafFacts:
    leaves = reach.leaves
    registered = {id(parameter) for parameter in model.parameters()}
    lost = {
        identity: leaf
        for identity, leaf in leaves.items()
        if isinstance(leaf, nn.Parameter) and identity not in held and identity not in registered
    }
    unregistered = {name: lost[id(p)].numel() for name, p in _in_containers(model) if id(p) in lost}
    others, heads = (dict(_untrained(modules, lost)) for modules in (reach.feeding, reach.following))
    vanished: dict[str, int] = {}
    for name, reference in reach.vanished:
        matrix = reference()  # the graph keeps it until the backward pass is over
        if matrix is not None and id(matrix) in lost:
            vanished[name] = vanished.get(name, 0) + matrix.numel()
    trained = sum(leaf.numel() for identity, leaf in leaves.items() if identity in held)
    return LeafFacts(unregistered, others, trained, vanished, heads)


def _untrained(modules: Iterable[nn.Module], lost: Collection[int]) -> Iterator[tuple[str, int]]:
    """Yield the class and the scalars of modules of which nothing is trained, and that are as they were made."""
    for module in modules if lost else ():
        parameters = [parameter for parameter in module.parameters() if parameter.requires_grad]
        if module.training and all(id(p) in lost for p in parameters) and _is_fresh(parameters):
            yield type(module).__name__, sum(parameter.numel() for parameter in parameters)


def _in_containers(model: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """Yield the parameters in lists, tuples and dicts of a model's modules, each with its path."""
    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name not in _OF_PYTORCH:
                yield from _within(f"{path}.{name}" if path else name, value, DEPTH)


def _within(name: str, value: Any, depth: int) -> Iterator[tuple[str, nn.Parameter]]:
    if type(value) is dict:
        entries: Iterable[tuple[Any, Any]] = value.items()
    elif type(value) in (list, tuple):
        entries = enumerate(value)
    else:
        return
    for key, entry in islice(entries, ENTRIES):
        place = f"{name}[{key!r}]" if isinstance(key, str | int) else f"{name}[...]"
        if isinstance(entry, nn.Parameter):
            yield place, entry
        elif isinstance(entry, nn.Module):
            yield from ((f"{place}.{own}", parameter) for own, parameter in entry.named_parameters())
        elif depth:
            yield from _within(place, entry, depth - 1)


def _is_fresh(parameters: list[nn.Parameter]) -> bool:
    """Whether the matrices are as PyTorch initialises them: written once, and not loaded or stepped on since."""
    matrices = [parameter for parameter in parameters if parameter.ndim > 1]
    return bool(matrices) and all(matrix._version == 1 for matrix in matrices)

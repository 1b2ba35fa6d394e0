"""Finds parameters that the loss depends on and that no optimizer holds."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any

from torch import Tensor, nn

from diagnostics.facts.loss import LeafFacts

DEPTH = 2  # of lists in lists
ENTRIES = 256  # of one list
_OF_PYTORCH = frozenset(vars(nn.Module()))


def leaf_facts(
    model: nn.Module,
    leaves: Mapping[int, Tensor],
    held: Collection[int],
    feeding: Iterable[nn.Module],
    made: Iterable[tuple[str, weakref.ref[Tensor]]] = (),
    following: Iterable[nn.Module] = (),
) -> LeafFacts:
    """Compare the leaves of a loss with what optimizers hold.

    Args:
        model: of the loop.
        leaves: of the loss's graph, by identity.
        held: identities of the parameters of all optimizers.
        feeding: modules whose results are inputs of the model.
        made: matrices of layers that ended with the forward pass, each with its layer's class.
        following: modules of which the model's results are inputs.
    """
    registered = {id(parameter) for parameter in model.parameters()}
    lost = {
        identity: leaf
        for identity, leaf in leaves.items()
        if isinstance(leaf, nn.Parameter) and identity not in held and identity not in registered
    }
    unregistered = {name: lost[id(p)].numel() for name, p in _in_containers(model) if id(p) in lost}
    others, heads = (dict(_untrained(modules, lost)) for modules in (feeding, following))
    vanished: dict[str, int] = {}
    for name, reference in made:
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

"""Finds out whether the predictions depend on weights that no checkpoint held and that were never trained."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.dependence import UntrainedFacts

from .subject import Subject

MAX_TESTED = 8  # matrices: of a head, not of a whole backbone
LEAST = 1e-3  # change of the predictions, as a share of the largest: more than rounding


def compare_untrained(subject: Subject, frozen: Mapping[str, int]) -> UntrainedFacts | None:
    """Shuffle the numbers of each matrix, and see whether any answer changes; None if there is no such matrix.

    Raises:
        Unclear: there are too many, or the answers are random.
        OutOfTime: the time is over.
    """
    if not frozen:
        return None
    if len(frozen) > MAX_TESTED:
        raise Unclear("a checkpoint lacked more weights than those of a head")
    parameters, used = dict(subject.model.named_parameters()), dict[str, int]()
    order, first = list[str](), None
    handles = [
        module.register_forward_hook(_noted(order, name))
        for name, module in subject.model.named_modules()
        if any(parameter.ndim >= 2 for parameter in module.parameters(recurse=False))
    ]
    try:
        first = subject.ask(subject.inputs)
    finally:
        for handle in handles:
            handle.remove()
    if first.change(subject.ask(subject.inputs, seed=1)) != 0:
        raise Unclear("the predictions are random in evaluation mode")
    generator = torch.Generator().manual_seed(0)
    largest = float(abs(first.main).max())
    for name, size in frozen.items():
        parameter: Tensor = parameters[name]
        with subject.restored(), torch.no_grad():
            numbers = parameter.flatten()
            parameter.copy_(numbers[torch.randperm(size, generator=generator)].view_as(parameter))
            change = first.change(subject.ask(subject.inputs))
        if change > LEAST * largest:
            used[name] = size
    if not used:
        return None
    last = bool(order) and any(name.rpartition(".")[0] == order[-1] for name in used)
    return UntrainedFacts(used, last)


def _noted(order: list[str], name: str) -> Callable[[nn.Module, object, object], None]:
    def ran(_module: nn.Module, _given: object, _returned: object) -> None:
        order.append(name)

    return ran

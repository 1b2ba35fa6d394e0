"""Finds out what padding does to the predictions of a PyTorch model and their mean, and which mask is missing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from diagnostics.collectors.pytorch.model import parameter_names
from diagnostics.collectors.shared.dependence import padding as shared
from diagnostics.collectors.shared.dependence.padding import (
    Padded,
    input_with_mask,
    masked_input,
    padded_input,
    separates,
)
from diagnostics.collectors.shared.dependence.subject import Unclear
from diagnostics.facts.dependence import PaddingFacts, PooledPadding

from .subject import Subject

MASK = "attention_mask"

Before = Callable[[nn.Module, tuple[Any, ...], dict[str, Any]], None]


def compare_padding(subject: Subject) -> PaddingFacts:
    """Compare the predictions for padded rows with and without the padding, and the effect of the words on both.

    Raises:
        Unclear: no input is seen to be padded, or the predictions are not one for each row.
        OutOfTime: the time is over.
    """
    name, mask = subject.unused_mask or (None, None)
    padded = None if mask is None else masked_input(subject.inputs, mask)
    if padded is None:
        name, padded = None, padded_input(subject.inputs)
    if _hides_words(subject, padded):
        longest = int(padded.width - padded.lengths.min())
        return PaddingFacts(
            padded.name, len(padded.words), longest, with_padding=0.0, without=0.0, hides_words=True
        )
    facts = shared.compare_padding(lambda given: subject.ask(given).main, subject.inputs, padded, subject.target)
    others = [array for other, array in subject.inputs.items() if other != padded.name]
    masked = any(separates(array, padded.words) for array in others)
    return replace(facts, masked=masked, mask=name, reader=_unmasked_reader(subject))


def _hides_words(subject: Subject, padded: Padded) -> bool:
    """Whether a padding mask of PyTorch's attention leaves out each word of the batch, and no padding."""
    masks: list[Tensor] = []

    def before(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        given = options.get("key_padding_mask", arguments[3] if len(arguments) > 3 else None)
        if isinstance(given, Tensor):
            masks.append(given.detach())

    attention = [module for module in subject.model.modules() if isinstance(module, nn.MultiheadAttention)]
    _ask_observed(subject, attention, before)
    for mask in masks:
        left_out = mask if mask.dtype == torch.bool else mask == -torch.inf
        words = torch.as_tensor(padded.words, device=mask.device)
        if left_out.shape == words.shape and bool((left_out == words).all()):
            return True
    return False


def _unmasked_reader(subject: Subject) -> str | None:
    """Return the outermost module that takes an attention mask, if it is called without one."""
    takes = {module: path for path, module in subject.model.named_modules() if MASK in parameter_names(module)}
    calls: list[tuple[nn.Module, bool]] = []

    def before(module: nn.Module, arguments: tuple[Any, ...], options: dict[str, Any]) -> None:
        place = parameter_names(module).index(MASK)
        given = options.get(MASK, arguments[place] if len(arguments) > place else None)
        calls.append((module, given is None))

    _ask_observed(subject, list(takes), before)
    if not calls or not calls[0][1]:
        return None
    module = calls[0][0]
    kind = type(module).__name__
    return f"{takes[module]} ({kind})" if takes[module] else kind


def _ask_observed(subject: Subject, modules: list[nn.Module], before: Before) -> None:
    """Run the model on its batch, and report each call of these modules."""
    hooks = [module.register_forward_pre_hook(before, with_kwargs=True) for module in modules]
    try:
        if hooks:
            subject.ask(subject.inputs)
    finally:
        for hook in hooks:
            hook.remove()


def compare_pooling(subject: Subject, evaluated: bool) -> PooledPadding:
    """Compare the means over the positions of padded rows with those of the same rows without padding.

    Args:
        subject: asked about a batch.
        evaluated: whether that is one of an evaluation.

    Raises:
        Unclear: no input marks padding, the model returns no vector for each position, or it returns zeros at
            padding: then a sum over the positions is right.
        OutOfTime: the time is over.
    """
    padded = input_with_mask(subject.inputs)
    if padded is None or not (padded.lengths == padded.width).any():
        raise Unclear("needs a batch that is padded to its longest row, and a mask of its padding")
    main = subject.ask(subject.inputs).main
    if main.ndim != 3 or main.shape[:2] != padded.words.shape:
        raise Unclear("the model does not return a vector for each position")
    if not main[~padded.words].any():
        raise Unclear("the model returns zeros at padding")
    removed = shared.compare_padding(lambda given: subject.ask(given).main.mean(1), subject.inputs, padded).removed
    if removed is None or removed.moved:
        raise Unclear("needs outputs for rows of different lengths")
    return PooledPadding(
        input=padded.name,
        rows=removed.rows,
        changed=removed.changed,
        longest=int(padded.width - np.min(padded.lengths)),
        change=removed.change,
        spread=removed.spread,
        width=main.shape[2],
        evaluated=evaluated,
    )

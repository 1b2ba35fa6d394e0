"""Finds out whether a model copies its targets from one of its inputs, position by position."""

from __future__ import annotations

import numpy as np

from diagnostics.collectors.shared.arrays import LABEL_NAMES
from diagnostics.facts.array import Array
from diagnostics.facts.dependence import CopyFacts

from .future import MIN_COMPARED, MIN_KINDS, MIN_LENGTH, by_position_or_none
from .subject import Subject, Unclear

MAX_ROWS = 8  # examples that are run
MASKED = 0.5  # of the positions with a target hold the mask token, and at most as many of all have a target
TAUGHT = 0.8  # of the targets stand one position later in the input of a decoder: to copy the source is the task


def compare_copy(subject: Subject) -> CopyFacts:
    """Replace the input that equals the targets by random tokens, and see whether the answers follow.

    Raises:
        Unclear: the targets are not one of the inputs, or the model may be an autoencoder.
        OutOfTime: the time is over.
    """
    name, counted = _same(subject)
    tokens = subject.inputs[name]
    size, length = len(tokens), tokens.shape[1]
    rows = next((r for r in range(min(MAX_ROWS, size), 1, -1) if r != length), 0)
    if rows < 2 or any(t.ndim and len(t) != size for t in subject.inputs.values()):
        raise Unclear("the first axis of an input is not the batch axis")
    inputs = {given: t[:rows] if t.ndim else t for given, t in subject.inputs.items()}
    masked, mask = subject.fills_in_tokens, _mask_token(tokens, counted)
    # As often as they are targets: a short training does not reach the rare ones. A mask would fill the rows.
    drawn = tokens[counted] if mask is None else np.unique(tokens)
    other = np.random.default_rng(0).choice(drawn, (rows, length))
    answers = _answers(subject, {**inputs, name: other}, rows, length)
    share = float((answers.argmax(-1) == other).mean())
    sources = [
        given
        for given, t in inputs.items()
        if given != name and _are_tokens(t) and not (given in LABEL_NAMES and np.array_equal(t, tokens[:rows]))
    ]
    if any(_is_later(subject.inputs[given], tokens) for given in sources):
        raise Unclear("another input holds the targets shifted by one position, as in teacher forcing")
    if not masked and (mask is not None or not sources):
        later = other.copy()
        later[:, length // 2 :] = np.roll(other, 1, 0)[:, length // 2 :]
        changed = _answers(subject, {**inputs, name: later}, rows, length)
        if np.allclose(changed[:, : length // 2], answers[:, : length // 2], atol=1e-4):
            mask = None  # a decoder whose prompts have no target
        elif mask is None:
            raise Unclear("the model may be an autoencoder, which reproduces the text that it reads")
    source = sources[0] if sources else None
    if mask is None:
        return CopyFacts(name, share, source, length, masked)
    hidden = int((tokens == mask).sum())
    return CopyFacts(name, share, source, length, True, mask, int(counted.sum()), hidden)


def _mask_token(tokens: Array, counted: Array) -> int | None:
    """Return the token that is at most of the positions with a target, which are few, and nowhere else."""
    kinds, numbers = np.unique(tokens[counted], return_counts=True)
    token = kinds[numbers.argmax()]
    is_mask = numbers.max() >= MASKED * counted.sum() and not (tokens[~counted] == token).any()
    return int(token) if is_mask and counted.mean() <= MASKED else None


def _same(subject: Subject) -> tuple[str, Array]:
    """Return the only input that is the target, token by token, and where it has a target."""
    target = subject.target
    if not subject.predicts_tokens or target is None:
        raise Unclear("the loss is not known to be a cross entropy over tokens")
    found: dict[str, Array] = {}
    for name, tensor in subject.inputs.items():
        if not _are_tokens(tensor) or tensor.shape[1] < MIN_LENGTH or tensor.size != target.size:
            continue
        wanted = target.reshape(tensor.shape)
        ignored = subject.ignore_index
        counted = np.ones(wanted.shape, bool) if ignored is None else wanted != ignored
        if int(counted.sum()) >= MIN_COMPARED and (wanted == tensor)[counted].all():
            found[name] = counted
    if len(found) > 1:  # a model that computes its own loss is given the targets as well
        found = {name: counted for name, counted in found.items() if name not in LABEL_NAMES}
    if len(found) != 1:
        raise Unclear("the targets are not the tokens of one of the inputs")
    return next(iter(found.items()))


def _is_later(other: Array, tokens: Array) -> bool:
    return other.shape == tokens.shape and bool((other[:, 1:] == tokens[:, :-1]).mean() > TAUGHT)


def _are_tokens(tensor: Array) -> bool:
    return tensor.ndim == 2 and tensor.dtype.kind in "iu" and len(np.unique(tensor)) >= MIN_KINDS


def _answers(subject: Subject, inputs: dict[str, Array], rows: int, length: int) -> Array:
    answers: Array | None = by_position_or_none(subject.ask(inputs).main, rows, length, 1)
    if answers is None:
        raise Unclear("the model does not return a prediction for each position")
    return answers

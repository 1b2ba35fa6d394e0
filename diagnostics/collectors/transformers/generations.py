"""Keeps the latest prompts of `generate`, and counts the texts that it cut off at its default length."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
from diagnostics.collectors.pytorch.losses import IGNORE_INDEX
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.shared.arrays import LABEL_NAMES, to_array
from diagnostics.collectors.shared.vocabulary import words_of
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import CutGenerations, PromptEnds
from diagnostics.taps import transformers as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

PROMPTS, LENGTH, WRITTEN = 64, 64, 16  # the latest prompts; their last tokens; the first ones written after each
ANSWERS = 256  # of a batch
MOST = 0.9  # of the targets must end with the end token; others were truncated
Known = TypeVar("Known")


@dataclass
class _Limit:
    """Of one call: the length at which it stops, the tokens before the first new one, and the end tokens.

    `forced`: at that length, the model writes an end token without predicting it, as BART does.
    """

    length: int
    given: int
    ends: list[int]
    forced: bool


@dataclass
class _Counts:
    """Of all calls with the default length: the new tokens of the first, rows, and rows cut off."""

    limit: int
    ends: list[int]
    rows: int = 0
    cut: int = 0


@dataclass
class _Prompts:
    """The last tokens of the latest prompts, and the first ones that were written after each."""

    ends: deque[Array] = field(default_factory=lambda: deque(maxlen=PROMPTS))
    written: deque[Array] = field(default_factory=lambda: deque(maxlen=PROMPTS))


class Generations:
    """What the calls of `generate` were given and returned, by the embedding of the model."""

    def __init__(self) -> None:
        self._counts: IdentityMap[Tensor, _Counts] = IdentityMap()
        self._prompts: IdentityMap[Tensor, _Prompts] = IdentityMap()
        self._call = threading.local()

    def listen(self, guard: FaultGuard) -> Unsubscribe:
        """Observe from now on; return what ends it. Faults go to the guard."""
        return subscribe(
            guard.attempt,
            (taps.generate.before, self._begins),
            (taps.validate_generated_length.before, self._limited),
            (taps.generate.after, self._returned),
        )

    def of(self, model: nn.Module, kept: KeptPass) -> CutGenerations | None:
        """Return what was cut off of a model, with the lengths of the targets in a batch that it was trained on.

        None unless nine in ten of the targets end with the end token.
        """
        counts = _of_model(self._counts, uncompiled(model))
        array = _labels_of(kept)
        if counts is None or array is None or array.ndim != 2:
            return None
        config: Any = getattr(uncompiled(model), "config", None)
        lengths = _lengths(array, counts.ends, whole=bool(getattr(config, "is_encoder_decoder", False)))
        return None if lengths is None else CutGenerations(counts.rows, counts.cut, counts.limit, lengths)

    def prompts_of(self, model: nn.Module, kept: KeptPass) -> PromptEnds | None:
        """Return the ends of a model's prompts, and the tokens before the answers in a batch of its training."""
        prompts = _of_model(self._prompts, uncompiled(model))
        before, answers = ([], []) if prompts is None else _before_answers(kept)
        if prompts is None or not before:
            return None
        trained, generated = _padded(before), _padded(prompts.ends)
        ids = np.unique(np.concatenate([trained.ravel(), generated.ravel()]))
        continued = _padded([tokens[::-1] for tokens in prompts.written])[:, ::-1]
        return PromptEnds(trained, generated, continued, np.array(answers), words_of(ids[ids >= 0].tolist()))

    def _begins(self, *_arguments: Any, **_options: Any) -> None:
        self._call.limit = None

    def _limited(self, model: Any, config: Any, given: int, is_default: bool, *_: Any) -> None:
        end = config.eos_token_id
        # After its first call, a Trainer writes the default length into the model's own settings.
        counts = None if is_default else _of_model(self._counts, model)
        is_kept_default = counts is not None and config.max_length == counts.limit
        if (is_default or is_kept_default) and config.max_new_tokens is None and end is not None:
            ends = [end] if isinstance(end, int) else list(end)
            forced = getattr(config, "forced_eos_token_id", None) is not None
            self._call.limit = _Limit(config.max_length, given, ends, forced)

    def _returned(self, result: Any, model: Any, *arguments: Any, **options: Any) -> None:
        limit: _Limit | None = getattr(self._call, "limit", None)
        self._call.limit = None
        rows = to_array(getattr(result, "sequences", result))
        weight = getattr(model.get_input_embeddings(), "weight", None)
        if rows is None or rows.ndim != 2 or not isinstance(weight, Tensor):
            return
        self._take_prompts(weight, model, rows, {"inputs": next(iter(arguments), None), **options})
        if limit is None:
            return
        new = limit.length - limit.given
        counts = self._counts.get(weight) or _Counts(new, limit.ends)
        counts.rows += len(rows)
        if rows.shape[1] >= limit.length:
            predicted = rows[:, limit.given : -1 if limit.forced else None]
            counts.cut += int((~np.isin(predicted, limit.ends).any(axis=1)).sum())
        self._counts[weight] = counts

    def _take_prompts(self, weight: Tensor, model: Any, rows: Array, options: Mapping[str, Any]) -> None:
        """Keep the prompts of a decoder; what it returns begins with them."""
        given = to_array(options.get("input_ids", options["inputs"]))
        if given is None or given.ndim != 2 or not len(given) or len(rows) % len(given):
            return
        first = rows[:: len(rows) // len(given)]  # of several texts for each prompt
        length = given.shape[1]
        if not np.array_equal(first[:, :length], given):
            return
        mask, pad = to_array(options.get("attention_mask")), getattr(model.config, "pad_token_id", None)
        if mask is None or mask.shape != given.shape:
            mask = np.ones(given.shape) if pad is None or len(given) == 1 else given != pad
        kept = self._prompts.get(weight) or _Prompts()
        for prompt, real, text in zip(given[-PROMPTS:], mask[-PROMPTS:], first[-PROMPTS:], strict=True):
            kept.ends.append(prompt[real == 1][-LENGTH:])
            kept.written.append(text[length : length + WRITTEN])
        self._prompts[weight] = kept


def _of_model(known: IdentityMap[Tensor, Known], model: nn.Module) -> Known | None:
    """Return what is known of a model that holds the embedding of one that generated."""
    found = (known.get(parameter) for parameter in model.parameters())
    return next((each for each in found if each is not None), None)


def _labels_of(kept: KeptPass) -> Array | None:
    labels = next((kept.inputs[1][name] for name in LABEL_NAMES if name in kept.inputs[1]), kept.target)
    return to_array(labels) if isinstance(labels, Tensor) else None


def _before_answers(kept: KeptPass) -> tuple[list[Array], list[int]]:
    """Return the tokens of a batch before each answer, and its first token.

    An answer is labels that count, after tokens whose labels do not.
    """
    named = kept.inputs[1]
    ids, labels = to_array(named.get("input_ids", next(iter(kept.inputs[0]), None))), _labels_of(kept)
    ignored = IGNORE_INDEX if kept.ignore_index is None else kept.ignore_index
    if ids is None or labels is None or ids.ndim != 2 or ids.dtype.kind not in "iu":
        return [], []
    counted = _counted(ids, labels, ignored)
    mask = to_array(named.get("attention_mask"))
    real = np.ones(ids.shape, bool) if mask is None or mask.shape != ids.shape else mask == 1
    if counted is None:
        return [], []
    starts = np.argwhere(counted[:, 1:] & ~counted[:, :-1])[:ANSWERS]
    before = [ids[row, : place + 1][real[row, : place + 1]][-LENGTH:] for row, place in starts]
    return before, [int(ids[row, place + 1]) for row, place in starts]


def _counted(ids: Array, labels: Array, ignored: int) -> Array | None:
    """Return which tokens (rows, length) have a label that counts; None if the labels are not those of tokens.

    Labels for a model of transformers are at the places of their tokens; those for another loss are one before.
    """
    rows, length = ids.shape
    if labels.shape == ids.shape and (labels == ids)[labels != ignored].all():
        return np.asarray(labels != ignored)
    if labels.size not in (rows * length, rows * (length - 1)):
        return None
    of_next = labels.reshape(rows, -1)[:, : length - 1]
    counts = of_next != ignored
    if not (of_next == ids[:, 1:])[counts].all():
        return None
    return np.concatenate([np.zeros((rows, 1), bool), counts], axis=1)


def _padded(rows: Iterable[Array]) -> Array:
    """Return rows (n, longest) that end at the same place, with -1 before their first numbers."""
    there = list(rows)
    found = np.full((len(there), max(map(len, there))), -1, np.int64)
    for row, values in zip(found, there, strict=True):
        row[len(row) - len(values) :] = values
    return found


def _lengths(labels: Array, ends: list[int], *, whole: bool) -> Array | None:
    """Return the number of tokens of each target up to its end token; None if too few have one.

    Args:
        labels: (rows, length).
        ends: the end tokens.
        whole: whether a row is a target from its first token on. Otherwise the labels of its prompt must be
            ignored.
    """
    counted, is_end = labels != IGNORE_INDEX, np.isin(labels, ends)
    complete = is_end.any(axis=1) & (whole | ~counted[:, 0])
    if not complete.size or complete.mean() < MOST:
        return None
    upto = np.arange(labels.shape[1]) <= is_end.argmax(axis=1)[:, None]
    return np.asarray((counted & upto).sum(axis=1)[complete])


generations = Generations()

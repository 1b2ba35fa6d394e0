"""Counts the texts that `generate` cut off at its default length."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor, nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.dependence.kept_pass import KeptPass
from diagnostics.collectors.pytorch.losses import IGNORE_INDEX
from diagnostics.collectors.pytorch.model import uncompiled
from diagnostics.collectors.shared.arrays import LABEL_NAMES, to_array
from diagnostics.facts.array import Array
from diagnostics.facts.inputs import CutGenerations
from diagnostics.taps import transformers as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

MOST = 0.9  # of the targets must end with the end token; others were truncated


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


class Generations:
    """What the calls of `generate` with the default length returned, by the embedding of the model."""

    def __init__(self) -> None:
        self._counts: IdentityMap[Tensor, _Counts] = IdentityMap()
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
        counts = self._counts_of(uncompiled(model))
        labels = next((kept.inputs[1][name] for name in LABEL_NAMES if name in kept.inputs[1]), kept.target)
        array = to_array(labels) if isinstance(labels, Tensor) else None
        if counts is None or array is None or array.ndim != 2:
            return None
        config: Any = getattr(uncompiled(model), "config", None)
        lengths = _lengths(array, counts.ends, whole=bool(getattr(config, "is_encoder_decoder", False)))
        return None if lengths is None else CutGenerations(counts.rows, counts.cut, counts.limit, lengths)

    def _counts_of(self, model: nn.Module) -> _Counts | None:
        """Return what is known of a model that holds the embedding of one that generated."""
        found = (self._counts.get(parameter) for parameter in model.parameters())
        return next((each for each in found if each is not None), None)

    def _begins(self, *_arguments: Any, **_options: Any) -> None:
        self._call.limit = None

    def _limited(self, model: Any, config: Any, given: int, is_default: bool, *_: Any) -> None:
        end = config.eos_token_id
        # After its first call, a Trainer writes the default length into the model's own settings.
        counts = None if is_default else self._counts_of(model)
        is_kept_default = counts is not None and config.max_length == counts.limit
        if (is_default or is_kept_default) and config.max_new_tokens is None and end is not None:
            ends = [end] if isinstance(end, int) else list(end)
            forced = getattr(config, "forced_eos_token_id", None) is not None
            self._call.limit = _Limit(config.max_length, given, ends, forced)

    def _returned(self, result: Any, model: Any, *_arguments: Any, **_options: Any) -> None:
        limit: _Limit | None = getattr(self._call, "limit", None)
        self._call.limit = None
        rows = to_array(getattr(result, "sequences", result))
        weight = getattr(model.get_input_embeddings(), "weight", None)
        if limit is None or rows is None or rows.ndim != 2 or not isinstance(weight, Tensor):
            return
        new = limit.length - limit.given
        counts = self._counts.get(weight) or _Counts(new, limit.ends)
        counts.rows += len(rows)
        if rows.shape[1] >= limit.length:
            predicted = rows[:, limit.given : -1 if limit.forced else None]
            counts.cut += int((~np.isin(predicted, limit.ends).any(axis=1)).sum())
        self._counts[weight] = counts


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

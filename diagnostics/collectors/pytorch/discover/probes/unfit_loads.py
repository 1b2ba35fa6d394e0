"""Finds loads that left out weights of models that are evaluated without a training of their own."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.collectors.pytorch.new_weights import new_weights
from diagnostics.collectors.pytorch.watch.record.calls.script_calls import calls
from diagnostics.facts.calls import LoadedKeys, ObjectLedger

from .untrained_instances import are_unrelated

MAX_LOADS = 8  # that are reported


class UnfitLoads(LoopProbe):
    """Notes the loads whose keys did not fit when the script evaluates what they left as it was.

    A load into a model that is trained is reported by what watches that training.

    Of a model whose class was trained, the weights that no load has set are compared with the trained ones: where
    others are the same, the model was saved in part.
    """

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._watching: Any = None  # the latest loop
        self._found: list[tuple[weakref.ref[nn.Module], LoadedKeys | ObjectLedger]] = []
        self._judged: IdentityMap[nn.Module, None] = IdentityMap()  # since the latest load

    def on_loop(self, model: nn.Module, watching: Any, before: Any) -> None:
        """Record what watches a loop that begins; its model is reported by that from now on."""
        self._watching = watching
        self._found = [found for found in self._found if not _share_weights(found[0](), [model])]

    def on_load(self, holder: Any, state: Any = None, *_: Any, **options: Any) -> None:
        """Start over: a later load may set what the first one left out."""
        self._judged.clear()

    def on_evaluation(self, module: nn.Module, inputs: Any) -> None:
        """Record the loads into a module that is called now, the first time after a load."""
        if self._watching is None or module in self._judged or len(self._found) >= MAX_LOADS:
            return
        self._judged[module] = None
        loaded, unchanged = calls.left_as_it_was(module), new_weights.unchanged_in(module)
        trained = list(self.subject.watched_by)
        if not (loaded or unchanged) or _share_weights(module, trained):
            return
        self._found.extend((weakref.ref(module), replace(keys, trained=False)) for keys in loaded)
        alike = (compare(module, unchanged, other) for other in trained if type(other) is type(module))
        if (ledger := next(filter(None, alike), None)) is not None:
            self._found.append((weakref.ref(module), ledger))

    def facts(self) -> Iterator[tuple[Any, LoadedKeys | ObjectLedger]]:
        """Yield what was found, each once, with what watches the latest loop."""
        told: list[LoadedKeys | ObjectLedger] = []
        for _, fact in self._found:
            if fact not in told:
                told.append(fact)
                yield self._watching, fact


def compare(module: nn.Module, unchanged: Mapping[str, nn.Parameter], trained: nn.Module) -> ObjectLedger | None:
    """Compare the weights that no load has set with the trained ones; None unless others are the same.

    Args:
        module: a model that is evaluated.
        unchanged: its weights, by name, as they were initialised.
        trained: a trained model of its class.
    """
    theirs = {name: one for name, one in trained.named_parameters() if one.requires_grad and one.ndim >= 2}
    lost = {
        name: own.numel()
        for name, own in unchanged.items()
        if (other := theirs.get(name)) is not None and other.shape == own.shape and are_unrelated(own, other)
    }
    if not lost:
        return None
    others = (
        (own, theirs[name]) for name, own in module.named_parameters() if name in theirs and name not in lost
    )
    restored = sum(_are_equal(own, other) for own, other in others)
    return ObjectLedger(type(module).__name__, lost=lost, restored=restored) if restored else None


def _are_equal(one: Tensor, other: Tensor) -> bool:
    plain = one.device == other.device and not one.is_meta and one.dtype == other.dtype
    return plain and torch.equal(one, other)


def _share_weights(module: nn.Module | None, others: Iterable[nn.Module]) -> bool:
    own = set() if module is None else {id(parameter) for parameter in module.parameters()}
    return any(id(parameter) in own for other in others for parameter in other.parameters())

"""Finds loads with `strict=False` into models that are evaluated without a training of their own."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from torch import nn

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.collectors.pytorch.watch.record.calls.script_calls import calls
from diagnostics.facts.calls import LoadedKeys

MAX_LOADS = 8  # that are reported


class UnfitLoads(LoopProbe):
    """Notes the loads whose keys did not fit when the script evaluates what they left as it was.

    A load into a model that is trained is reported by what watches that training.
    """

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        self._watching: Any = None  # the latest loop
        self._found: list[tuple[weakref.ref[nn.Module], LoadedKeys]] = []
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
        loaded = calls.left_as_it_was(module)
        if loaded and not _share_weights(module, list(self.subject.watched_by)):
            self._found.extend((weakref.ref(module), replace(keys, trained=False)) for keys in loaded)

    def facts(self) -> Iterator[tuple[Any, LoadedKeys]]:
        """Yield the loads, each with what watches the latest loop."""
        for keys in dict.fromkeys(keys for _, keys in self._found):
            yield self._watching, keys


def _share_weights(module: nn.Module | None, others: Iterable[nn.Module]) -> bool:
    own = set() if module is None else {id(parameter) for parameter in module.parameters()}
    return any(id(parameter) in own for other in others for parameter in other.parameters())

"""Marks the autograd graphs of sampled steps, and counts those still alive later.

A graph is alive as long as somebody holds a tensor that was computed in it. The mark hangs on a node of the graph,
in the dict that autograd keeps for each node, and dies with it; memory sizes, caches and allocators play no part.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from typing import Any

import numpy as np

from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.training import GraphFacts

MAX_MARKS = 512  # marks held; every second is dropped when there are more
KEY = "diagnostics"


class _Mark:
    __slots__ = ("__weakref__",)


class LiveGraphs(TrainingProbe):
    """Marks on autograd graphs, and whether each is still alive."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        self._marks: list[tuple[int, weakref.ref[_Mark]]] = []

    def on_pass_end(self, step: int, output: Any, inputs: Any) -> None:
        """Mark the graph of a forward pass; the first of a step counts."""
        if self._marks and self._marks[-1][0] == step:
            return
        node = next((tensor.grad_fn for tensor in tensors(output) if tensor.grad_fn is not None), None)
        if node is None:
            return
        mark = _Mark()
        node.metadata[KEY] = mark
        self._marks.append((step, weakref.ref(mark)))
        if len(self._marks) > MAX_MARKS:
            self._marks = self._marks[::2]

    def facts(self) -> Iterator[GraphFacts]:
        """Yield which are alive now, if any was marked."""
        if marks := list(self._marks):
            yield GraphFacts(
                steps=np.array([step for step, _ in marks]),
                alive=np.array([mark() is not None for _, mark in marks]),
            )

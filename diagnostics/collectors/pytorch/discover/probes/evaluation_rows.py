"""Compares the rows that a model is evaluated on with its training rows."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.pytorch.discover.batch_source import RememberedLoader
from diagnostics.collectors.pytorch.discover.first_step_pipeline import FirstPass
from diagnostics.collectors.pytorch.discover.loop_probe import LoopProbe
from diagnostics.collectors.pytorch.loader_rows import evaluation_facts
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors

MAX_COMPARED = 2  # sets of rows that a model is evaluated on


class EvaluationRows(LoopProbe):
    """Looks at passes without gradients of models whose training rows are known."""

    def __init__(self, subject: Any) -> None:
        super().__init__(subject)
        # By model: the loader of its rows, and how many comparisons with others are left.
        self._trained_on: IdentityMap[nn.Module, tuple[RememberedLoader, int]] = IdentityMap()

    def on_first_pass(self, model: nn.Module, seen: FirstPass) -> None:
        """Remember the loader."""
        if seen.loader is not None:
            self._trained_on[model] = RememberedLoader(seen.loader), MAX_COMPARED

    def on_evaluation(self, module: nn.Module, inputs: Any) -> None:
        """Compare the rows, if they come from another loader and were not compared before."""
        if module not in self._trained_on or torch.is_grad_enabled():
            return
        remembered, left = self._trained_on[module]
        found = self.subject.first.loaders.source(tensors(inputs))
        training = None if found is None else remembered.get()
        if not left or (found is not None and training is None):
            del self._trained_on[module]
        elif found is not None and training is not None and found[0].dataset is not training.dataset:
            self._trained_on[module] = remembered, left - 1
            self.subject.first.loaders.forget()
            with own_run():
                facts = evaluation_facts(training, found[0])
            if facts and module in self.subject.watched_by:
                self.subject.report(self.subject.watched_by[module], facts)

"""Finds layers that were replaced, or unfrozen, while the model was watched, and that no optimizer holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from torch import nn

from diagnostics.collectors.pytorch.optimizer import facts_together
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.facts.pipeline import OptimizerFacts


class ReplacedParameters(TrainingProbe):
    """Compares the optimizers with the model when it is asked."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        parameters = list(subject.model.parameters())
        self._known = {id(parameter) for parameter in parameters}
        # Those that require no gradient, each with PyTorch's version counter and the gradient left by an earlier
        # training.
        frozen = [p for p in parameters if not p.requires_grad and not p.is_inference()]
        self._frozen = {id(p): (p._version, _gradient(p)) for p in frozen}

    def facts(self) -> Iterator[OptimizerFacts]:
        """Yield the optimizers with what they miss.

        Nothing unless a matrix that is new, or was frozen, has got a gradient, and was never stepped on or loaded.
        """
        model, optimizers = self.subject.model, self.subject.optimizers
        trained = {name: p for name, p in model.named_parameters() if p.requires_grad}
        new = {name: p for name, p in trained.items() if id(p) not in self._known}
        unfrozen = {name: p for name, p in trained.items() if self._frozen.get(id(p), (None,))[0] == p._version}
        lost = {name for name, p in new.items() if p.ndim > 1 and p.grad is not None and p._version == 1}
        lost |= {
            name
            for name, p in unfrozen.items()
            if p.ndim > 1 and p.grad is not None and _gradient(p) != self._frozen[id(p)][1]
        }
        facts = facts_together(optimizers, model) if lost and optimizers and self.subject.steps else None
        if facts is not None and lost & facts.missing.keys():
            missing = {name: n for name, n in facts.missing.items() if name in new or name in unfrozen}
            yield dataclasses.replace(facts, missing=missing, unfrozen=len(missing.keys() & unfrozen.keys()))


def _gradient(parameter: nn.Parameter) -> tuple[int, int] | None:
    """Return the identity and the version of a gradient: another pair once a backward pass has written it."""
    gradient = parameter.grad
    return None if gradient is None else (id(gradient), gradient._version)

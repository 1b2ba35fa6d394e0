"""The pipeline of a fastai `Learner`: its model, loaders, loss and optimizer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from diagnostics.collectors.pytorch.examine.pipeline import PyTorchPipeline


def is_learner(value: Any) -> bool:
    """Whether this is a `Learner` of fastai, which is not imported here."""
    learners = sys.modules.get("fastai.learner")
    return learners is not None and isinstance(value, getattr(learners, "Learner", ()))


class FastaiDataLoader:
    """The batches of a fastai loader, whose next epoch has the order that it would have had.

    Args:
        loader: a `fastai.data.load.DataLoader`, which draws the seed of an epoch from that of the epoch before.
    """

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        attributes, generator = dict(vars(self._loader)), self._loader.rng
        state = generator.getstate()
        try:
            yield from self._loader
        finally:
            generator.setstate(state)
            vars(self._loader).clear()
            vars(self._loader).update(attributes)


class LearnerPipeline(PyTorchPipeline):
    """`examine(learn)`.

    Args:
        learn: the user's Learner. Where it has no optimizer yet, one is made as its `fit` would, and not stepped.
    """

    def __init__(self, learn: Any) -> None:
        loaders, model = learn.dls, learn.model
        optimizer = learn.opt
        if optimizer is None:
            kind = learn.opt_func
            optimizer = kind(learn.splitter(model), lr=learn.lr) if callable(kind) else kind
        optimizer = getattr(optimizer, "opt", optimizer)  # PyTorch's, in an OptimWrapper
        super().__init__(model, FastaiDataLoader(loaders.train), learn.loss_func, optimizer, _evaluation(loaders))
        self.name = f"{type(model).__name__} with a {type(learn).__name__}"


def _evaluation(loaders: Any) -> Any:
    return FastaiDataLoader(loaders[1]) if len(loaders.loaders) > 1 else None

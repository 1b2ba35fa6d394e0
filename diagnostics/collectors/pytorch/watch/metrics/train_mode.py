"""Records which layers were in training mode during training steps."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from torch import nn

from diagnostics.collectors.pytorch.discover.latest_batch import latest_batch
from diagnostics.collectors.pytorch.model import has_modes
from diagnostics.collectors.pytorch.watch.training_probe import TrainingProbe, WatchedModel
from diagnostics.collectors.shared.history import History
from diagnostics.facts.layers import TrainModeFacts


class TrainModes(TrainingProbe):
    """Records the mode of layers that behave differently in training, in a few steps."""

    def __init__(self, subject: WatchedModel) -> None:
        super().__init__(subject)
        layers = [(name, module) for name, module in subject.model.named_modules() if has_modes(module)]
        self._layers = [(name, module) for name, module in layers if _learns(subject.model, name, module)]
        self._rows = History(
            [("steps", np.int64), ("in_training", np.int64), ("sources", np.int64)], recent=64, older=64
        )

    def on_backward(self, step: int) -> None:
        """Count the layers in training mode, during a backward pass: an evaluation has none.

        Of several passes in a step the one with the most counts: gradients of the inputs, as adversarial examples
        are made from, are taken in evaluation mode.
        """
        if not self._layers:
            return
        count = sum([module.training for _, module in self._layers])
        if self._rows.total and int(self._rows.last()["steps"][0]) == step:
            self._rows.last()["in_training"] = max(count, int(self._rows.last()["in_training"][0]))
        else:
            self._rows.append((step, count, latest_batch.source))

    def facts(self) -> Iterator[TrainModeFacts]:
        """Yield the facts, unless no step was recorded."""
        if self._layers and not self._rows.total:
            return
        yield TrainModeFacts(
            layers=tuple(name for name, _ in self._layers),
            keeps_statistics=tuple(
                isinstance(module, nn.modules.batchnorm._BatchNorm) for _, module in self._layers
            ),
            **self._rows.arrays(),
        )


def _learns(model: nn.Module, name: str, module: nn.Module) -> bool:
    """Whether a layer belongs to a part that is trained: by its own parameters, or those around it."""
    own = list(module.parameters())
    around = own or model.get_submodule(name.rpartition(".")[0]).parameters()
    return any(parameter.requires_grad for parameter in around)

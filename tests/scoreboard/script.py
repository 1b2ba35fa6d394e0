"""A script of the zoo right before its training: what the tools are handed, by names that hold for all scripts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.nn.functional import cross_entropy


@dataclass(frozen=True)
class Script:
    """What the first part of a script has made.

    Attributes:
        id: of the exhibit.
        names: the script's variables.
    """

    id: str
    names: dict[str, Any]

    @property
    def trainer(self) -> Any:
        """The Hugging Face Trainer; None in a script with a loop of its own."""
        return self.names.get("trainer")

    @property
    def model(self) -> torch.nn.Module:
        """The model that is trained."""
        return self.names["model"] if self.trainer is None else self.trainer.model

    @property
    def optimizer(self) -> torch.optim.Optimizer:
        """Its optimizer; a Trainer makes the one that it will use."""
        return self.names["optimizer"] if self.trainer is None else self.trainer.create_optimizer()

    @property
    def train_batches(self) -> Any:
        """The loader that is trained on."""
        if self.trainer is not None:
            return self.trainer.get_train_dataloader()
        return self.names["train_loader"] if "train_loader" in self.names else self.names["train"]

    @property
    def evaluation_batches(self) -> Any:
        """None if the script has no loader for them."""
        if self.trainer is not None:
            return self.trainer.get_eval_dataloader() if self.trainer.eval_dataset is not None else None
        return self.names.get("eval_loader", self.names.get("validation"))

    @property
    def epochs(self) -> int:
        """How often the script goes through its data."""
        return int(self.names["EPOCHS"])

    def loss(self, model: torch.nn.Module, batch: Any) -> torch.Tensor:
        """Return the loss of a batch as the script computes it, in half precision where it does so."""
        if self.trainer is not None:
            return self.trainer.compute_loss(model, batch)
        if not isinstance(batch, list | tuple):
            return model(**batch).loss
        *inputs, labels = batch
        with torch.autocast("cpu", torch.float16, enabled="autocast" in _read(self)):
            return cross_entropy(model(*inputs), labels)

    def after_each_backward(self, call: Callable[[float], None]) -> None:
        """Have `call` be handed the loss of each step, after `loss.backward()` and before `optimizer.step()`."""
        if self.trainer is None:
            self.optimizer.register_step_pre_hook(lambda *_: call(self.names["loss"].item()))
            return
        step = self.trainer.training_step

        def training_step(*arguments: Any, **options: Any) -> torch.Tensor:
            loss = step(*arguments, **options)
            call(loss.item())
            return loss

        self.trainer.training_step = training_step


def _read(script: Script) -> str:
    with open(script.names["__file__"], encoding="utf-8") as file:
        return file.read()

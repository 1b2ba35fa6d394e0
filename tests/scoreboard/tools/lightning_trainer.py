"""Lightning: the script's model, loss, optimizer and loaders in a LightningModule, with its checks switched on.

That is `Trainer(detect_anomaly=True)`, `EarlyStopping(check_finite=True)`, the sanity check of the validation
before the training, and its own warnings and errors. Its loop takes the place of the script's: where the bug is in
the loop, there is nothing to ask.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import lightning
import torch
from lightning.pytorch.callbacks import EarlyStopping

from tests.scoreboard.answers import Answers
from tests.scoreboard.script import Script

REPLACES_TRAINING = True
DEPRECATIONS = (DeprecationWarning, FutureWarning, PendingDeprecationWarning)
SPEED = ("does not have many workers", "slow down compute speed", "interval for logging", "persistent_workers")


class Ported(lightning.LightningModule):
    def __init__(self, script: Script) -> None:
        super().__init__()
        self.script, self.model = script, script.model

    def training_step(self, batch: Any, index: int) -> torch.Tensor:
        loss = self.script.loss(self.model, batch)
        self.log("train_loss", loss, batch_size=1)
        return loss

    def validation_step(self, batch: Any, index: int) -> None:
        self.log("eval_loss", self.script.loss(self.model, batch), batch_size=1)

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return self.script.optimizer


def fit(script: Script, **checks: Any) -> None:
    quiet = ("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary")
    options = dict.fromkeys(quiet, False) | {"max_epochs": script.epochs, "accelerator": "cpu"} | checks
    lightning.Trainer(**options).fit(Ported(script), script.train_batches, script.evaluation_batches)


@contextmanager
def asked(script: Script, answers: Answers) -> Iterator[None]:
    logging.getLogger("lightning.pytorch").setLevel(logging.WARNING)
    finite = EarlyStopping("train_loss", patience=10**9, check_finite=True, check_on_train_epoch_end=True)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            fit(script, detect_anomaly=True, callbacks=[finite])
            yield
        except RuntimeError as error:
            if "returned nan values" in str(error):
                answers.add("NaN in backward", "error", str(error))
            raise
        finally:
            for warning in seen:
                if "lightning" in warning.filename and not issubclass(warning.category, DEPRECATIONS):
                    text = str(warning.message)
                    speed = any(words in text for words in SPEED)
                    answers.add(text.partition(".")[0], "note" if speed else "warning", text)
            if finite.stopped_epoch or "not finite" in (finite.stopping_reason_message or ""):
                answers.add("loss is not finite", "error", finite.stopping_reason_message or "")

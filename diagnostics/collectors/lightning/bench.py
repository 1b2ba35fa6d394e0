"""Runs `training_step` of copies of a LightningModule, with a Trainer of Lightning's own that trains nothing.

What code of a module may ask for is there: `self.trainer`, `self.optimizers()`, a logger that drops everything.
What it logs goes nowhere.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import logging
import sys
from collections.abc import Iterator
from typing import Any

from torch import nn

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored

from .kinds import overrides, package_of

EPOCHS = 1000  # Lightning's default; a schedule may be made for so many
_READY = "_diagnostics_ready"  # on a copy: its optimizers and schedules
# Hooks of `fit` in which a module may set what its training_step reads, in their order.
BEFORE = ("on_fit_start", "on_train_start", "on_train_epoch_start")
TRANSFER = ("on_before_batch_transfer", "on_after_batch_transfer")
_SILENT = ("log", "log_dict", "print")


class Bench:
    """A Trainer that is made when it is needed.

    Args:
        module: the user's, of which copies are run; only its class is used.
        loader: of the training data.
        datamodule: which made the loader; None if there is none.
    """

    def __init__(self, module: nn.Module, loader: Any, datamodule: Any = None) -> None:
        self._package, self._loader, self._datamodule = package_of(module), loader, datamodule
        self._made: Any = None

    @property
    def _trainer(self) -> Any:
        if self._made is None:
            dummy = sys.modules[f"{self._package.__name__}.loggers.logger"].DummyLogger
            with quiet():
                self._made = self._package.Trainer(
                    accelerator="cpu",
                    devices=1,
                    max_epochs=EPOCHS,
                    logger=dummy(),
                    enable_checkpointing=False,
                    enable_progress_bar=False,
                    enable_model_summary=False,
                )
        return self._made

    @contextlib.contextmanager
    def attached(self, model: Any) -> Iterator[Any]:
        """Attach the Trainer to a copy for as long as this lasts; yield the Trainer."""
        trainer = self._trainer
        strategy = trainer.strategy
        strategy.connect(model)
        with quiet():
            trainer._data_connector.attach_data(model, train_dataloaders=self._loader, datamodule=self._datamodule)
        vars(model)["_current_fx_name"] = "training_step"
        vars(model).update(dict.fromkeys(_SILENT, _ignore))
        strategy.optimizers, strategy.lr_scheduler_configs = vars(model).get(_READY, ([], []))
        try:
            yield trainer
        finally:
            strategy.optimizers, strategy.lr_scheduler_configs = [], []
            strategy._lightning_module = strategy._model = None  # a copy may be large
            trainer.fit_loop._data_source.instance = None
            vars(model)["_trainer"] = None

    def configure(self, model: Any) -> tuple[list[Any], list[Any]]:
        """Return the optimizers of a copy, and Lightning's settings of their schedules.

        Raises:
            Exception: of the user's own, or of Lightning's for a result that it does not take.
        """
        with self.attached(model) as trainer, quiet():
            trainer.strategy.setup_optimizers(trainer)
            made = list(trainer.strategy.optimizers), list(trainer.strategy.lr_scheduler_configs)
        vars(model)[_READY] = made
        return made

    def training_step(self, model: Any, batch: Any) -> Any:
        """Return what `training_step` of a copy returns for the first batch."""
        if _READY not in vars(model):
            self._make_ready(model)
        with self.attached(model):
            arguments = (batch, 0) if _takes_number(model.training_step) else (batch,)
            return model.training_step(*arguments)

    def transferred(self, model: Any, batch: Any) -> Any:
        """Return a batch as the hooks around the transfer to the device leave it."""
        with self.attached(model):
            for name in filter(functools.partial(overrides, model), TRANSFER):
                batch = getattr(model, name)(batch, 0)
        return batch

    def _make_ready(self, model: Any) -> None:
        try:
            self.configure(model)
        except Exception:  # told where the optimizer is examined
            vars(model)[_READY] = [], []
        for name in BEFORE:
            if overrides(model, name):
                with self.attached(model):
                    getattr(model, name)()


def set_up(module: Any, bench: Bench) -> Any:
    """Let a copy make the layers that it makes in `setup` or `configure_model`, as `fit` would."""
    for name, arguments in (("setup", ("fit",)), ("configure_model", ())):
        if overrides(module, name):
            with bench.attached(module):
                getattr(module, name)(*arguments)
    for name in _SILENT:
        vars(module).pop(name, None)
    return module


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep Lightning's notes and warnings about our Trainer to ourselves."""
    log = getattr(sys.modules.get("lightning_utilities.core.rank_zero"), "log", None)
    log = log if isinstance(log, logging.Logger) else logging.getLogger("lightning.pytorch.utilities.rank_zero")
    before = log.disabled
    log.disabled = True
    try:
        with own_run(), own_warnings_ignored():
            yield
    finally:
        log.disabled = before


def _ignore(*_arguments: Any, **_options: Any) -> None:
    """Log nothing."""


def _takes_number(step: Any) -> bool:
    """Whether a training_step takes the number of the batch."""
    try:
        inspect.signature(step).bind(None, 0)
    except TypeError:
        return False
    return True

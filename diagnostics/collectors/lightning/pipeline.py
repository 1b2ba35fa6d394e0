"""The pipeline of a LightningModule: its own `training_step` and optimizers, on copies."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import functools
import inspect
import logging
import math
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from torch.utils.data import DataLoader

from diagnostics.collectors.isolation.internal import own_run, own_warnings_ignored
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.batch import describe_source, prediction_in, split_batch
from diagnostics.collectors.pytorch.data import not_batches
from diagnostics.collectors.pytorch.examine.pipeline import PyTorchPipeline
from diagnostics.collectors.pytorch.losses import recognise_loss
from diagnostics.collectors.pytorch.model import describe_model
from diagnostics.collectors.pytorch.optimizer import (
    OptimizerBuilder,
    facts_together,
    full_rate,
    like,
    warms_up,
)
from diagnostics.collectors.pytorch.state import random_states_kept
from diagnostics.collectors.shared.arrays import describe
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, users_code
from diagnostics.errors import InvalidInput, typed_message, what
from diagnostics.facts.pipeline import Fact, ModelFacts

from .kinds import is_datamodule, overrides, package_of

MOST_CALLS = 16  # of parts of the module, whose outputs are kept
KEEPS_MODES = (2, 2)  # the first version whose fit leaves the modes of the module as they are
MANUAL = (
    "the module optimizes by itself (automatic_optimization is False): its training_step runs backward passes and "
    "steps; watch it while it trains: Trainer(callbacks=[diagnostics.LightningCallback()])"
)
EPOCHS = 1000  # Lightning's default; a schedule may be made for so many
_READY = "_diagnostics_ready"  # on a copy: its optimizers and schedules
# Hooks of `fit` in which a module may set what its training_step reads, in their order.
BEFORE = ("on_fit_start", "on_train_start", "on_train_epoch_start")
TRANSFER = ("on_before_batch_transfer", "on_after_batch_transfer")
_SILENT = ("log", "log_dict", "print")


class LightningPipeline(PyTorchPipeline):
    """`examine(module, loader)`.

    Args:
        call: the name of the function that was called.
        module: the user's LightningModule.
        data: a loader, a LightningDataModule, or None where the module has its own loader.
        evaluation: a loader of the evaluation data; None where data module or module may have one.

    Raises:
        InvalidInput: there is no data that can be read, or no module that can be set up.
    """

    def __init__(self, call: str, module: nn.Module, data: Any = None, evaluation: Any = None) -> None:
        if not overrides(module, "training_step"):
            raise InvalidInput(
                f"{call}() was given the LightningModule {type(module).__name__}, which has no training_step. "
                f"Define it, or pass the parts: {call}(model, loader, loss_fn, optimizer)."
            )
        loader, evaluation, datamodule = loaders(call, module, data, evaluation)
        super().__init__(_with_layers(call, module, loader, datamodule), loader, None, None, evaluation)
        source = data if is_datamodule(data) else loader
        self.name = f"{type(module).__name__} with {describe_source(source)}"
        self._manual = not module.automatic_optimization
        self._bench = Bench(module, loader, datamodule)
        self._outputs: list[Any] = []  # of the parts that training_step called last
        self._chosen: int | None = None  # which of them the loss is of
        self._trial: tuple[float | None, OptimizerBuilder | None, bool | None] | None = None

    def model_facts(self) -> ModelFacts:
        """See `PyTorchPipeline.model_facts`."""
        version = tuple(int(part) for part in package_of(self.model).__version__.split(".")[:2])
        training = self.model.training if version >= KEEPS_MODES else None
        facts = describe_model(self.model, training=training, computes_loss=False)
        return dataclasses.replace(facts, computes_loss=None)

    def take_batch(self, number: int = 0) -> Any:
        """Build one batch, as the hooks around its transfer leave it."""
        batch = super().take_batch(number)
        if not any(overrides(self.model, name) for name in TRANSFER):
            return batch
        with users_code():
            return self._bench.transferred(whole_copy(self.model), batch)

    def compute(self, model: nn.Module, batch: Any) -> tuple[Any, Any]:
        """Return the loss that `training_step` returns, and the output that it is of."""
        result = self._step(model, batch)
        loss = _loss_of(result)
        if isinstance(loss, Tensor) and loss.numel() == 1:
            self._chosen = self._of_loss(float(loss.detach()), batch)
        return loss, self._output()

    def predict(self, model: nn.Module, batch: Any) -> Any:
        """Return the output of which `training_step` computes the loss."""
        self._step(model, batch)
        return self._output()

    def forward(self) -> Iterator[Fact]:
        """See `Pipeline.forward`."""
        if self._manual:
            raise CannotJudge(MANUAL)
        yield from super().forward()

    def optimizer_step(self) -> Iterator[Fact]:
        """See `Pipeline.optimizer_step`."""
        model = self._copy.fresh()
        with users_code():
            optimizers = self._bench.configure(model)[0]
        if not optimizers or type(optimizers[0]).__name__ == "_MockOptimizer":
            if self._manual:
                raise CannotJudge("configure_optimizers returned None")
            raise StageFailed(
                "configure_optimizers returned None: Lightning trains without an optimizer, and no weight "
                "changes. Return the optimizer."
            )
        yield facts_together(optimizers, model)

    def trial_optimizer(self) -> tuple[float | None, OptimizerBuilder | None, bool | None]:
        """See `PyTorchPipeline.trial_optimizer`."""
        if self._trial is None:
            model = whole_copy(self.model)
            try:
                optimizers = self._bench.configure(model)[0]
            except Exception:  # told where the optimizer is examined
                optimizers = []
            self._trial = None, None, None
            if len(optimizers) == 1:
                self._trial = full_rate(optimizers[0]), like(optimizers[0], model), warms_up(optimizers[0])
        return self._trial

    def overfit(self) -> Iterator[Fact]:
        """See `Pipeline.overfit`."""
        if self._manual:
            raise CannotJudge("the module optimizes by itself")
        yield from super().overfit()

    def subsets(self, classes: frozenset[int]) -> Any:
        """See `Pipeline.subsets`."""
        if self._manual:
            raise CannotJudge("the module optimizes by itself")
        return super().subsets(classes)

    # --- parts ----------------------------------------------------------------------------------------------

    def _step(self, model: nn.Module, batch: Any) -> Any:
        if self._manual:
            raise CannotJudge(MANUAL)
        with _outputs_of_parts(model) as outputs:
            result = self._bench.training_step(model, batch)
        self._outputs = outputs
        return result

    def _of_loss(self, value: float, batch: Any) -> int | None:
        """Return the place of the output that gives the loss with the target of the batch; None if none does."""
        target = split_batch(batch)[1]
        for place in reversed(range(len(self._outputs))):
            prediction = prediction_in(self._outputs[place])
            if math.isfinite(value) and recognise_loss(value, prediction, target).kind != "other":
                return place
        return None

    def _output(self) -> Any:
        if not self._outputs:
            return {}
        place = self._chosen
        return self._outputs[place if place is not None and place < len(self._outputs) else -1]


def _loss_of(result: Any) -> Any:
    """Pick the loss as Lightning does.

    Raises:
        StageFailed: there is none, and training would not run, or would change nothing.
    """
    if result is None:
        raise StageFailed(
            "training_step returned None for the first batch. Lightning skips the backward pass of such a batch, "
            "and no weight changes. Return the loss."
        )
    if not isinstance(result, Mapping):
        if not isinstance(result, Tensor):
            raise StageFailed(
                f"training_step returned {describe(result)}; Lightning takes the loss as a tensor, or a dict with "
                'it as "loss".'
            )
        return result
    if result.get("loss") is None:
        raise StageFailed(
            f'training_step returned a dict without "loss" (its keys: {", ".join(map(str, result)) or "none"}). '
            'Lightning takes the loss from there: return {"loss": loss, ...}.'
        )
    return result["loss"]


def _with_layers(call: str, module: nn.Module, loader: Any, datamodule: Any) -> nn.Module:
    """Return the module, or a copy that has made the layers which it makes when `fit` begins."""
    if not overrides(module, "setup") and not overrides(module, "configure_model"):
        return module
    with own_run(), random_states_kept(module, loader):
        try:
            return set_up(whole_copy(module), Bench(module, loader, datamodule))
        except Exception as error:
            raise InvalidInput(
                f"{call}() set up a copy of {type(module).__name__}, as fit would, and that raised "
                f"{typed_message(error)}. Watch it while it trains: "
                "Trainer(callbacks=[diagnostics.LightningCallback()])."
            ) from error


@contextmanager
def _outputs_of_parts(model: nn.Module) -> Iterator[list[Any]]:
    """Collect the outputs of the parts with parameters that a copy calls, but for what these call themselves."""
    outputs: list[Any] = []
    running: list[nn.Module] = []

    def begins(module: nn.Module, _inputs: Any) -> None:
        running.append(module)

    def ends(module: nn.Module, _inputs: Any, output: Any) -> None:
        running.pop()
        if not running and len(outputs) < MOST_CALLS:
            outputs.append(output)

    handles: list[Any] = []
    for module in model.modules():
        if next(module.parameters(), None) is not None:
            before: Callable[..., Any] = module.register_forward_pre_hook(begins)
            handles += [before, module.register_forward_hook(ends)]
    try:
        yield outputs
    finally:
        for handle in handles:
            handle.remove()


def loaders(call: str, module: Any, data: Any, evaluation: Any) -> tuple[Any, Any, Any]:
    """Return the loader of the training data, that of the evaluation data or None, and the data module or None.

    Args:
        call: the name of the function that was called.
        module: the LightningModule.
        data: a loader, a LightningDataModule, or None where the module has its own `train_dataloader`.
        evaluation: a loader; None where a data module or the module may have one.

    Raises:
        InvalidInput: there is no loader, or none that can be read.
    """
    if data is None and not overrides(module, "train_dataloader"):
        raise InvalidInput(
            f"{call}() was given the LightningModule {type(module).__name__} and no data. Pass what fit gets: "
            f"{call}(module, loader) or {call}(module, datamodule)."
        )
    if data is None or is_datamodule(data):
        owner = module if data is None else data
        with own_run(), random_states_kept():
            train, evaluated, own = _made_by(call, owner, is_data=data is not None)
        return _checked(call, train), evaluated if evaluation is None else evaluation, own
    return _checked(call, data), evaluation, None


def _checked(call: str, loader: Any) -> Any:
    several = isinstance(loader, dict) or type(loader).__name__ == "CombinedLoader"
    if several:
        raise InvalidInput(
            f"{call}() was given {what(loader)} of several loaders, whose batches come together. Pass a few "
            f"batches as training_step gets them: {call}(module, [batch, ...])."
        )
    if (why := not_batches(loader)) is not None:
        raise InvalidInput(f"{call}() was given {what(loader)} as data{why}")
    return loader


def _made_by(call: str, owner: Any, *, is_data: bool) -> tuple[Any, Any, Any]:
    """Let a copy of a data module, or of the module, prepare its data as `fit` would, and make its loaders."""
    kind = type(owner).__name__
    if is_data and not overrides(owner, "train_dataloader"):
        raise InvalidInput(
            f"{call}() was given the data module {kind}, which has no train_dataloader. Define it, or pass a "
            f"loader: {call}(module, loader)."
        )
    try:
        own = copy.deepcopy(owner)
    except Exception as error:
        raise InvalidInput(
            f"{call}() was given {kind}, which cannot be copied ({typed_message(error)}), and yours is not set "
            f"up. Pass its loader: {call}(module, {'datamodule' if is_data else 'module'}.train_dataloader())."
        ) from error
    with _told(call, f"{kind}.prepare_data()"):
        own.prepare_data()
    with _told(call, f'{kind}.setup("fit")'):
        own.setup("fit")
    with _told(call, f"{kind}.train_dataloader()"):
        train = own.train_dataloader()
    evaluated = None
    if overrides(own, "val_dataloader"):
        with _told(call, f"{kind}.val_dataloader()"):
            evaluated = own.val_dataloader()
    if isinstance(evaluated, list | tuple) and len(evaluated) == 1:
        evaluated = evaluated[0]
    return train, evaluated if isinstance(evaluated, DataLoader) else None, own if is_data else None


@contextlib.contextmanager
def _told(call: str, what_ran: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        raise InvalidInput(
            f"{call}() called {what_ran} on a copy, as fit would, and it raised {typed_message(error)}. Pass a "
            f"loader if it needs more than fit gives it: {call}(module, loader)."
        ) from error


class Bench:
    """A Trainer of Lightning's own that trains nothing, made when it is needed.

    What code of a module may ask for is there: `self.trainer`, `self.optimizers()`, a logger that drops
    everything. What it logs goes nowhere.

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

"""The pipeline of a Hugging Face `Trainer`: its own collator and loss, on a copy of its model."""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, WeightedRandomSampler
from transformers import EvalPrediction, Trainer

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.python_state import CannotRestore, python_state_kept
from diagnostics.collectors.pytorch.batch import split_batch
from diagnostics.collectors.pytorch.data import collate_batch, collated, dataset_facts
from diagnostics.collectors.pytorch.dependence.kept_pass import forwards_by_library
from diagnostics.collectors.pytorch.discover.loss_calls import LossRecorder, RecordedLoss
from diagnostics.collectors.pytorch.examine.model_copy import num_bytes, starting_weights
from diagnostics.collectors.pytorch.examine.pipeline import PyTorchPipeline
from diagnostics.collectors.pytorch.loader_rows import is_plain
from diagnostics.collectors.pytorch.model import describe_model, several_ranks
from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder
from diagnostics.collectors.pytorch.state import kept
from diagnostics.collectors.shared.arrays import LABEL_NAMES, configured_classes, fields, to_array
from diagnostics.collectors.shared.dataset_rows import is_iterable_only, sample_rows
from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.shared.overfit_plan import AWAITS_END, can_wait, has_settled
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed, users_code
from diagnostics.collectors.shared.split_overlap import compared_rows
from diagnostics.facts.pipeline import Fact, ModelFacts
from diagnostics.facts.trials import MetricFacts

from .arguments import monitor_facts, trainer_workers, trial_optimizer
from .call_safety import is_overridden

MOST_ROWS = 32  # of a batch that is only shown

SQUASHING = ("softmax", "sigmoid")  # what makes probabilities of a model's logits

# Logit of the true class in a prediction that is surely right; the others get its negative. Whole numbers a metric
# may take for labels.
CONFIDENT = 9.5


class TrainerPipeline(PyTorchPipeline):
    """`examine(trainer)`. The Trainer's own methods prepare inputs and compute the loss; `train` is not called.

    Args:
        trainer: the user's.
        objection_to_metric: why `compute_metrics` must not be called; None if it may be.
        compares_splits: whether rows of the evaluation set may be read.
        puts_overfit_off: whether the overfit of a short training waits for its end.
    """

    batch_is_needed = False

    def __init__(
        self,
        trainer: Trainer,
        *,
        objection_to_metric: str | None = None,
        compares_splits: bool = True,
        puts_overfit_off: bool = False,
    ) -> None:
        super().__init__(trainer.model, None, None, trainer.optimizer)
        self.trainer = trainer
        self._objection_to_metric, self._compares_splits = objection_to_metric, compares_splits
        self._puts_overfit_off = puts_overfit_off
        self._trials: Callable[[], Iterator[Fact]] | None = None  # that were put off
        self.cannot_restore: str | None = None
        self._own_loader: Any = None
        self._returns_outputs = True
        self._own_loss = OwnLoss()
        self.name = f"{type(trainer.model).__name__} with a {type(trainer).__name__}"

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """See `Pipeline.untouched`. Where state cannot be put back, nothing that might change it is called."""
        trainer = self.trainer
        optimizers = (trainer.optimizer, getattr(trainer.optimizer, "optimizer", None), trainer.lr_scheduler)
        uncalled = (trainer.callback_handler, trainer.accelerator, trainer.state, trainer.control, trainer.args)
        with kept(self.roots(), self.model), contextlib.ExitStack() as stack:
            try:
                stack.enter_context(python_state_kept(trainer, uncalled=uncalled, untouched=optimizers))
            except CannotRestore as reason:
                self.cannot_restore = str(reason)
            except Exception as error:  # an object that does not let itself be looked into
                self.cannot_restore = f"looking for it raised {type(error).__name__}"
            yield

    def roots(self) -> tuple[Any, ...]:
        """See `PyTorchPipeline.roots`."""
        return (self.trainer,)

    def model_facts(self) -> ModelFacts:
        """See `PyTorchPipeline.model_facts`; `Trainer.train` sets the mode itself."""
        facts = describe_model(self.model, training=None, computes_loss=not self.replaces_loss())
        return dataclasses.replace(facts, arguments=type(self.trainer.args).__name__)

    def data_sources(self) -> tuple[Any, ...]:
        """See `Pipeline.data_sources`."""
        trainer = self.trainer
        named = (getattr(trainer, name, None) for name in ("processing_class", "data_collator", "train_dataset"))
        return tuple(named)

    def dataset(self) -> Iterator[Fact]:
        """See `Pipeline.dataset`."""
        facts = self.model_facts()
        yield facts
        dataset = self._train_dataset()
        if isinstance(dataset, Mapping):
            raise CannotJudge(f"the train_dataset is a {type(dataset).__name__}, whose parts are joined later")
        if self.cannot_restore is not None and not is_plain(dataset):
            raise CannotJudge(f"the effects of reading rows could not be undone: {self.cannot_restore}")
        if self._own_loader_method() is None:
            if (workers := trainer_workers(self.trainer)) is not None:
                yield workers
            yield self.reread()
        feature = next((f for n, f in self._features(dataset).items() if n in LABEL_NAMES), None)
        yield dataset_facts(
            sample_rows(self.rows(dataset)),
            columns=self._kept_columns(),
            pad_token_id=facts.pad_token_id,
            label_names=tuple(getattr(feature, "names", ())) or None,
            weighted_sampling=self._weighs_rows(),
            shuffled=None if is_iterable_only(dataset) else True,
        )
        evaluation = self.trainer.eval_dataset if self._compares_splits else None
        for split in evaluation.values() if isinstance(evaluation, dict) else (evaluation,):
            yield from compared_rows(self.rows(dataset), self.rows(split))

    def batch(self) -> Iterator[Fact]:
        """See `Pipeline.batch`."""
        if self.cannot_restore is not None:
            raise CannotJudge(f"the effects of making a batch could not be undone: {self.cannot_restore}")
        if is_overridden(self.trainer, "_prepare_inputs"):
            raise CannotJudge(f"{type(self.trainer).__name__} makes its batches in its own _prepare_inputs")
        if self._own_loader_method() is not None and (ranks := several_ranks()):
            raise CannotJudge(f"{ranks} processes train together, and the loader could wait for the others")
        yield from super().batch()

    def take_batch(self, number: int = 0) -> Any:
        """Build one batch as the Trainer's data loader would, without iterating it."""
        loader = self.make_loader()
        if not isinstance(loader, DataLoader):
            raise CannotJudge(
                f"{self._own_loader_method()} returns a {type(loader).__name__}, which is not read beside training"
            )
        batch = collate_batch(loader, number, self.rows(loader.dataset))
        if not isinstance(batch, Mapping):
            if (own := is_overridden(self.trainer, "training_step", "get_batch_samples")) is not None:
                raise CannotJudge(f"the collator returns a {type(batch).__name__}, for {own} of the Trainer's own")
            raise StageFailed(
                f"The collator returned a {type(batch).__name__}; a Trainer needs a dict of tensors, "
                "because it calls model(**batch)."
            )
        with users_code():
            return self.trainer._prepare_inputs(dict(batch))

    def compute(self, model: nn.Module, batch: Any) -> tuple[Any, Any]:
        """Let the Trainer compute the loss, overridden `compute_loss` included."""
        if not self.replaces_loss() and forwards_by_library(model):
            return self._computed(model, batch)
        with self._own_loss.heard() as calls:
            loss, outputs = self._computed(model, batch)
            self._own_loss.take(calls, loss)
        return loss, outputs

    def recognised(self, value: float) -> Recognised:
        """See `PyTorchPipeline.recognised`; of probabilities that it makes, the loss is the one called."""
        call = self._own_loss.call if self.replaces_loss() else None
        if call is None:
            return super().recognised(value)
        self._prediction, self._target = call.prediction, call.target
        return call.recognised(of_classes=True)

    def own_classes(self) -> tuple[torch.Tensor, int | None] | None:
        """Return the target of a loss of the script's that is one cross entropy, and what it leaves out."""
        return self._own_loss.classes

    def _computed(self, model: nn.Module, batch: Any) -> tuple[Any, Any]:
        with (
            self._standing_in(model),
            self.trainer.compute_loss_context_manager(),
            self.trainer.accelerator.autocast(),
        ):
            if self._returns_outputs:
                try:
                    loss, outputs = self.trainer.compute_loss(model, dict(batch), return_outputs=True)
                    return loss, outputs
                except (ValueError, TypeError, NotImplementedError, AssertionError):
                    if is_overridden(self.trainer, "compute_loss") is None:
                        raise
            # Training asks for the loss alone, and some losses have no outputs to return.
            with _last_output(model) as seen:
                loss = self.trainer.compute_loss(model, dict(batch))
            self._returns_outputs = False
            return loss, seen.get("last", {})

    @contextmanager
    def _standing_in(self, model: nn.Module) -> Iterator[None]:
        """Let an overridden `compute_loss` that says self.model or self.log reach the copy, and no logger."""
        trainer = self.trainer
        own = trainer.model, trainer.model_wrapped
        copies = self._copy.loss or {}
        linked = {name: getattr(trainer, name) for name in copies}
        trainer.model = trainer.model_wrapped = model
        for name, copied in copies.items():
            setattr(trainer, name, copied)
        trainer.log = lambda *_arguments, **_options: None
        try:
            yield
        finally:
            trainer.model, trainer.model_wrapped = own
            for name, original in linked.items():
                setattr(trainer, name, original)
            del trainer.log

    def copied_along(self) -> Any:
        """See `PyTorchPipeline.copied_along`: modules of the Trainer that hold the model, such as its loss."""
        return {name: getattr(self.trainer, name) for name in self._linked()}

    def _linked(self) -> list[str]:
        mine = {id(parameter) for parameter in self.model.parameters()}
        return [
            name
            for name, value in vars(self.trainer).items()
            if name not in ("model", "model_wrapped")
            for module in (value.values() if isinstance(value, dict) else [value])  # one for each dataset
            if isinstance(module, nn.Module) and any(id(parameter) in mine for parameter in module.parameters())
        ]

    def predict(self, model: nn.Module, batch: Any) -> Any:
        """Call the model without labels."""
        with self.trainer.accelerator.autocast():
            return model(**split_batch(batch)[0])

    def known_classes(self) -> int | None:
        """Return what a classification head is configured for, unless the Trainer's loss was replaced."""
        integer_labels = isinstance(self._target, torch.Tensor) and not self._target.is_floating_point()
        return configured_classes(self.model) if integer_labels and not self.replaces_loss() else None

    def optimizer_step(self) -> Iterator[Fact]:
        """See `Pipeline.optimizer_step`."""
        if self.trainer.optimizer is None:
            raise CannotJudge("the Trainer makes its optimizer in train(), over all trainable parameters")
        self.optimizer = self.trainer.optimizer
        yield from super().optimizer_step()

    def overfit(self) -> Iterator[Fact]:
        """See `Pipeline.overfit`. If it is put off, a second call runs it from the weights of the first."""
        waits = self._puts_overfit_off and can_wait(_planned_steps(self.trainer), num_bytes(self.model))
        self.awaits_end = not self.awaits_end and waits
        if self.awaits_end:
            self._trials = self.trials()
            self._copy.start, self._copy.latest = starting_weights(self.model), None
            raise CannotJudge(AWAITS_END)
        trials = self._trials or self.trials()
        with users_code():
            yield from trials()

    def overfit_is_needed(self, losses: Sequence[float]) -> bool:
        """See `Pipeline.overfit_is_needed`."""
        return not has_settled(losses, self._recognised.floor)

    def trial_optimizer(self) -> tuple[float | None, OptimizerBuilder | None, bool | None]:
        """See `PyTorchPipeline.trial_optimizer`; without an optimizer yet, what the arguments ask for."""
        return trial_optimizer(self.trainer, self.model)

    def evaluation_batch(self) -> Any:
        """See `Pipeline.evaluation_batch`; of several evaluation sets, the first."""
        trainer, held_out, collate = self.trainer, self.trainer.eval_dataset, self.trainer.data_collator
        if isinstance(held_out, dict):
            held_out = next(iter(held_out.values()), None)
        if held_out is None or not self._compares_splits or self._own_loader_method() is not None:
            return None
        if self._kept_columns() is not None:
            collate = trainer._get_collator_with_removed_columns(collate, description="evaluation")
        rows = min(trainer.args.per_device_eval_batch_size, MOST_ROWS)
        return collated(DataLoader(held_out, collate_fn=collate), rows, self.rows)

    def evaluation(self) -> Iterator[Fact]:
        """See `Pipeline.evaluation`."""
        if (monitors := monitor_facts(self.trainer)) is not None:
            yield monitors
        yield self.ask_metric(self._target, self._recognised.num_classes)

    def ask_metric(self, target: Any, num_classes: int | None) -> MetricFacts:
        """See `metric.ask_metric`."""
        classes = num_classes or configured_classes(self.model)
        return ask_metric(self.trainer, target, classes, self._objection_to_metric)

    # --- parts ----------------------------------------------------------------------------------------------

    @property
    def examined_batch(self) -> Any:
        """The batch that was examined, as the model gets it; None if there was none."""
        return self._batch

    def replaces_loss(self) -> bool:
        """Whether the Trainer computes another loss than the model's own."""
        return (
            type(self.trainer).compute_loss is not Trainer.compute_loss
            or getattr(self.trainer, "compute_loss_func", None) is not None
            or self.trainer.label_smoother is not None
        )

    def _weighs_rows(self) -> bool | None:
        """Say whether the training rows are drawn by a weighted sampler; only a method of the user's own does."""
        trainer = self.trainer
        if getattr(trainer.get_train_dataloader, "__func__", None) is not Trainer.get_train_dataloader:
            return None
        if getattr(trainer._get_train_sampler, "__func__", None) is Trainer._get_train_sampler:
            return False
        try:
            return True if isinstance(trainer._get_train_sampler(), WeightedRandomSampler) else None
        except Exception:  # it may rely on what only train() sets up
            return None

    def _train_dataset(self) -> Any:
        dataset = self.trainer.train_dataset
        if dataset is None:
            raise StageFailed("The Trainer has no train_dataset: pass Trainer(..., train_dataset=...).")
        if isinstance(dataset, Mapping) and type(self.trainer).__module__.partition(".")[0] == "transformers":
            splits = ", ".join(map(str, dataset))
            raise StageFailed(
                f"The train_dataset is a {type(dataset).__name__} of several ({splits}): a Trainer takes one. "
                'Pass Trainer(..., train_dataset=datasets["train"]).'
            )
        return dataset

    def _own_loader_method(self) -> str | None:
        return is_overridden(self.trainer, "get_train_dataloader", "_get_dataloader")

    def make_loader(self) -> DataLoader[Any]:
        """Make a loader of the Trainer's rows and collator that no accelerator has prepared.

        Where the Trainer has its own method to make one, that loader is returned.
        """
        if self._own_loader_method() is not None:
            if self._own_loader is None:
                with users_code():
                    self._own_loader = self.trainer.get_train_dataloader()
            return self._own_loader
        dataset, collate = self._train_dataset(), self.trainer.data_collator
        kept = self._kept_columns()
        if kept is not None:
            if _is_from_hub(dataset):
                # An unaccepted column is taken away before the collator sees it; no column left is an error there.
                with users_code():
                    dataset = self.trainer._remove_unused_columns(dataset, description="training")
            else:
                collate = self.trainer._get_collator_with_removed_columns(collate, description="training")
        return DataLoader(
            dataset,
            batch_size=self.trainer._train_batch_size,
            shuffle=None if is_iterable_only(dataset) else True,
            collate_fn=collate,
            drop_last=self.trainer.args.dataloader_drop_last,
        )

    def reads_in_fresh_workers(self) -> bool:
        """See `PyTorchPipeline.reads_in_fresh_workers`."""
        args = self.trainer.args
        return args.dataloader_num_workers > 0 and not args.dataloader_persistent_workers

    def _features(self, dataset: Any) -> Mapping[str, Any]:
        features = getattr(dataset, "features", None)
        return features if isinstance(features, Mapping) else {}

    def known_columns(self) -> tuple[str, ...] | None:
        """Name the columns that are known to reach the collator, calling nothing; None: not known, or all."""
        signature = self.trainer._signature_columns
        if not self.trainer.args.remove_unused_columns or signature is None:
            return None
        return tuple({*signature, *(self.trainer.label_names or ())})

    def _kept_columns(self) -> tuple[str, ...] | None:
        """Name the columns that the Trainer lets through to the collator; None: all of them."""
        if not self.trainer.args.remove_unused_columns:
            return None
        if self._own_loader_method() is not None:
            return None  # it lets through what it likes
        with users_code():
            self.trainer._set_signature_columns_if_needed()
        return self.known_columns()


@contextlib.contextmanager
def _last_output(model: nn.Module) -> Iterator[dict[str, Any]]:
    """Yield a dict that holds, as "last", what the model returned last."""
    seen: dict[str, Any] = {}

    def take(module: nn.Module, args: Any, output: Any) -> None:
        seen["last"] = output

    handle = model.register_forward_hook(take)
    try:
        yield seen
    finally:
        handle.remove()


def _is_from_hub(dataset: Any) -> bool:
    """Whether this is a `datasets.Dataset`; that package is not there for everybody who has a Trainer."""
    datasets = sys.modules.get("datasets")
    return datasets is not None and isinstance(dataset, datasets.Dataset)


def _planned_steps(trainer: Trainer) -> int | None:
    """Return the steps of the optimizer that `train` will make, about; None if the dataset has no length."""
    args = trainer.args
    if args.max_steps > 0:
        return int(args.max_steps)
    try:
        rows = len(trainer.train_dataset)
    except (TypeError, AttributeError, NotImplementedError):
        return None
    rows_a_step = trainer._train_batch_size * args.gradient_accumulation_steps * max(args.world_size, 1)
    return int(args.num_train_epochs * rows / rows_a_step) + 1


class OwnLoss:
    """Records the calls of losses within a block.

    Attributes:
        call: the only call, if its result was the whole loss and it got probabilities; None otherwise.
        classes: of the first pass whose whole loss was one cross entropy: its target, and the label that it leaves
            out; None if there was none.
    """

    def __init__(self) -> None:
        self.call: RecordedLoss | None = None
        self.classes: tuple[Tensor, int | None] | None = None

    @contextmanager
    def heard(self) -> Iterator[LossRecorder]:
        """Record the calls within; pass the loss to `take` before the end."""
        calls = LossRecorder(lambda call: None, FaultGuard())
        calls.open(lambda: True)
        try:
            yield calls
        finally:
            calls.close()

    def take(self, calls: LossRecorder, loss: object) -> None:
        """Take the only call, if the loss is its result."""
        if len(calls.heard) != 1 or not isinstance(loss, Tensor):
            return
        call = calls.heard[0]
        if call.result is None or call.result() is not loss:
            return
        if call.made_by in SQUASHING:
            self.call = call
        if call.indexed and self.classes is None:
            self.classes = call.target, call.ignore_index


def ask_metric(trainer: Trainer, target: Any, classes: int | None, objection: str | None) -> MetricFacts:
    """Hand `compute_metrics` predictions that are all right: as logits, and as classes.

    Args:
        trainer: whose metric it is.
        target: the labels of a batch, of any shape.
        classes: their number; None if not known.
        objection: why `compute_metrics` must not be called; None if it may be.

    Raises:
        CannotJudge: there is no metric, or no perfect answer can be made up.
    """
    if trainer.compute_metrics is None:
        raise CannotJudge("the Trainer has no compute_metrics")
    if getattr(trainer.args, "predict_with_generate", False):
        raise CannotJudge("the metric gets the token ids that the model generates, not logits")
    if (own := is_overridden(trainer, "prediction_step", "evaluation_loop", "evaluate")) is not None:
        raise CannotJudge(f"{type(trainer).__name__}.{own} decides what the metric gets")
    if objection is not None:
        raise CannotJudge(f"the metric was not called: {objection}")
    labels = to_array(target)
    if classes is None or labels is None or not np.issubdtype(labels.dtype, np.integer):
        raise CannotJudge("the labels are not class indices, so perfect predictions cannot be constructed")
    true = np.where((labels >= 0) & (labels < classes), labels, 0)
    logits = np.full((*labels.shape, classes), -CONFIDENT, dtype=np.float32)
    np.put_along_axis(logits, true[..., None], CONFIDENT, axis=-1)
    on_logits, error = _ask(trainer, _preprocessed(trainer, logits, labels), labels)
    on_classes, _ = _ask(trainer, true, labels)
    return MetricFacts(on_logits, on_classes, error)


def _preprocessed(trainer: Trainer, logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    preprocess = trainer.preprocess_logits_for_metrics
    if preprocess is None:
        return logits
    with users_code():
        predictions = preprocess(torch.from_numpy(logits), torch.from_numpy(labels))
    array = to_array(next(iter(fields(predictions).values()), None))
    return logits if array is None else array


def _ask(
    trainer: Trainer, predictions: np.ndarray, labels: np.ndarray
) -> tuple[dict[str, float] | None, str | None]:
    """Return the metric's numbers, or what it raised."""
    try:
        answer = trainer.compute_metrics(EvalPrediction(predictions=predictions, label_ids=labels))
    except Exception as error:
        return None, f"{type(error).__name__}: {error}"
    numbers = {
        str(name): array for name, value in fields(answer).items() if (array := to_array(value)) is not None
    }
    return {name: float(array) for name, array in numbers.items() if array.ndim == 0}, None

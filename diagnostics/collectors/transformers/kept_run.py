"""Keeps a batch of a Trainer, how its training began, and its batches, to ask and train copies when it is over."""

from __future__ import annotations

import dataclasses
import warnings
import weakref
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from transformers import PreTrainedModel, Trainer, TrainingArguments

from diagnostics.collectors.isolation.internal import own_run
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.collectors.pytorch.batch import loss_in, prediction_in, split_batch
from diagnostics.collectors.pytorch.dependence.kept_pass import (
    KeptPass,
    can_be_kept,
    forwards_by_library,
    on_host,
    uses_cache,
)
from diagnostics.collectors.pytorch.discover.training_batches import MOST, MOST_BYTES, TrainedBatch
from diagnostics.collectors.pytorch.examine.experiments import Run, at_its_beginning
from diagnostics.collectors.pytorch.examine.kept_start import LOSSES, REL_TOLERANCE
from diagnostics.collectors.pytorch.examine.kept_start import MOST_BYTES as MOST_BYTES_OF_WEIGHTS
from diagnostics.collectors.pytorch.examine.model_copy import num_bytes, starting_weights
from diagnostics.collectors.pytorch.losses import IGNORE_INDEX
from diagnostics.collectors.pytorch.model import fills_in_tokens, uncompiled
from diagnostics.collectors.pytorch.optimizer import full_rate, like
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors
from diagnostics.facts.loss_contracts import LossContract, contract_of

from .arguments import trial_optimizer

if TYPE_CHECKING:
    from .first_step import TrainerStepPipeline
    from .pipeline import TrainerPipeline

LABELS = "labels"
COMMON = ("cross_entropy", "binary_cross_entropy_with_logits", "mse_loss")  # of models with their own code

# Heads whose loss shifts the labels by one, and that are to predict the next token.
SHIFTING = ("GPT2LMHeadModel", "OpenAIGPTLMHeadModel", "BertLMHeadModel")


class KeptRun:
    """The first weights of a Trainer's model, and the batches that it trains on.

    Args:
        trainer: before its first step.
        known: the loss of logits and labels, with its contract; None if the model's own code computes it.
    """

    def __init__(self, trainer: Trainer, known: tuple[Callable[..., Tensor], LossContract] | None) -> None:
        model = uncompiled(trainer.model)
        self._trainer, self._known = weakref.ref(trainer), known
        self._values = starting_weights(model)
        with own_run():  # it may build one
            self._rate, self._optimizer, _ = trial_optimizer(trainer, model)
        self._batches: list[tuple[dict[str, Tensor], float | None]] = []
        self._nbytes = 0

    def step(self, inputs: Any) -> None:
        """Keep a batch that `training_step` gets, unless there are enough."""
        trainer = self._trainer()
        if len(self._batches) >= MOST or self._nbytes > MOST_BYTES or trainer is None:
            return
        if not isinstance(inputs, Mapping) or LABELS not in inputs:
            return
        if not self._batches and trainer.optimizer is not None:  # the arguments alone leave out the weight decay
            with own_run():
                built = like(trainer.optimizer, uncompiled(trainer.model))
            if built is not None:
                self._rate, self._optimizer = full_rate(trainer.optimizer), built
        kept = {name: part.detach().clone() for name, part in inputs.items() if isinstance(part, Tensor)}
        groups = getattr(trainer.optimizer, "param_groups", None) or ()
        self._batches.append((kept, max((float(group["lr"]) for group in groups), default=None)))
        self._nbytes += sum(part.nbytes for part in kept.values())

    def run_of(self, model: nn.Module, arguments: TrainingArguments) -> Run | str:
        """Return what is known of the training, or why copies cannot be trained.

        Args:
            model: as the training has left it.
            arguments: of the Trainer.
        """
        if not self._batches or self._optimizer is None or not self._rate:
            return "its optimizer or its batches are not known"
        fresh = at_its_beginning(model, self._values)
        if fresh is None:
            return "its layers were replaced since its first step"
        pads = {
            LABELS: IGNORE_INDEX,
            "input_ids": int(getattr(getattr(model, "config", None), "pad_token_id", None) or 0),
        }
        length = max(
            (part.shape[1] for kept, _ in self._batches for part in kept.values() if part.ndim > 1), default=0
        )
        padded = [
            ({name: _padded(part, length, pads.get(name, 0)) for name, part in kept.items()}, rate)
            for kept, rate in self._batches
        ]
        given = {name: part for name, part in padded[0][0].items() if name != LABELS}
        with torch.no_grad(), own_run():
            known = self._known or _loss_of(whole_copy(fresh), padded[0][0])
            prediction = prediction_in(whole_copy(fresh)(**given))
        if known is None:
            return "its loss is not one of the common loss functions"
        if prediction is None:
            return "its model returns no prediction without labels"
        loss, contract = known
        return Run(
            model=fresh,
            given=((), given),
            loss=loss,
            contract=contract,
            options={},
            optimizer=self._optimizer,
            name=str(getattr(arguments.optim, "value", arguments.optim)),
            rate=self._rate,
            batches=[
                TrainedBatch(
                    {f"1.{name}": part for name, part in kept.items() if name != LABELS},
                    kept[LABELS],
                    (len(kept[LABELS]), *prediction.shape[1:]),
                    rate,
                )
                for kept, rate in padded
            ],
            clip=arguments.max_grad_norm or None,
            library="trainer",
        )


def keep_run(trainer: Trainer, replaces_loss: bool) -> KeptRun | None:
    """Keep the weights of a Trainer's model; None if it is large, or if its loss is not a known one."""
    model = uncompiled(trainer.model)
    if replaces_loss or not isinstance(model, nn.Module) or num_bytes(model) > MOST_BYTES_OF_WEIGHTS:
        return None
    if trainer.args.label_smoothing_factor:
        return None
    if not isinstance(model, PreTrainedModel):
        return KeptRun(trainer, None)
    if not type(model).__module__.startswith("transformers."):
        return None
    name, config = type(model).__name__, model.config
    if name.endswith("ForSequenceClassification") and getattr(config, "problem_type", None) is None:
        if config.num_labels == 1:
            return KeptRun(trainer, (_squared, contract_of("mse_loss")))
        return KeptRun(trainer, (F.cross_entropy, contract_of("cross_entropy")))
    if predicts_next_token(model):
        return KeptRun(trainer, (_next_tokens, _OF_TOKENS))
    if fills_in_tokens(model) or name.endswith("ForTokenClassification"):
        return KeptRun(trainer, (_tokens, _OF_TOKENS))
    return None


_OF_TOKENS = dataclasses.replace(contract_of("cross_entropy"), class_axis=-1)


def _loss_of(model: nn.Module, batch: Mapping[str, Tensor]) -> tuple[Callable[..., Tensor], LossContract] | None:
    """Return the common loss of logits and labels that a model returns; None if none or several have its value."""
    output = model(**batch)
    value, prediction, labels = loss_in(output), prediction_in(output), batch[LABELS]
    if not isinstance(value, Tensor) or prediction is None:
        return None
    found = [name for name in COMMON if _has_value(LOSSES[name], prediction, labels, float(value))]
    return (LOSSES[found[0]], contract_of(found[0])) if len(found) == 1 else None


def _has_value(loss: Callable[..., Tensor], prediction: Tensor, labels: Tensor, value: float) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of shapes that are broadcast
            other = float(loss(prediction, labels))
    except (RuntimeError, ValueError, IndexError):  # labels that it does not take
        return False
    return abs(other - value) <= REL_TOLERANCE * abs(value)


def _squared(prediction: Tensor, target: Tensor) -> Tensor:
    return F.mse_loss(prediction.squeeze(), target.squeeze())


def _tokens(prediction: Tensor, target: Tensor) -> Tensor:
    return F.cross_entropy(prediction.flatten(0, -2), target.flatten(), ignore_index=IGNORE_INDEX)


def _next_tokens(prediction: Tensor, target: Tensor) -> Tensor:
    return _tokens(prediction[:, :-1], target[:, 1:])


def _padded(part: Tensor, length: int, value: int) -> Tensor:
    """Pad sequences (n, m) on the right, so that the rows of all batches are alike."""
    if part.ndim != 2 or part.is_floating_point():
        return part
    return F.pad(part, (0, length - part.shape[1]), value=value)


def keep_step(pipeline: TrainerPipeline | TrainerStepPipeline) -> KeptPass | None:
    """Copy the batch that a pipeline examined to the host; None if there is none, or it is too large."""
    batch, model = pipeline.examined_batch, pipeline.trainer.model
    if not isinstance(batch, Mapping) or not isinstance(model, nn.Module):
        return None
    inputs, target = split_batch(batch)
    if not isinstance(inputs, Mapping) or not can_be_kept(list(tensors((inputs, target)))):
        return None
    labels = on_host(target) if isinstance(target, Tensor) else None
    ignored, tokens = None, False
    if pipeline.replaces_loss() or not forwards_by_library(model):  # a class of the script's, with its own loss
        own = pipeline.own_classes()
        if own is not None and can_be_kept([own[0]]):
            labels, ignored, tokens = on_host(own[0]), own[1], True
    elif labels is not None and labels.ndim == 2 and (predicts_next_token(model) or fills_in_tokens(model)):
        labels = labels[:, 1:] if predicts_next_token(model) else labels
        ignored, tokens = IGNORE_INDEX, True
    return KeptPass(
        inputs=((), on_host(dict(inputs))),
        target=labels,
        ignore_index=ignored,
        batch_first=forwards_by_library(model),
        shuffled=None,
        predicts_tokens=tokens,
        use_cache=uses_cache(model),
    )


def predicts_next_token(model: Any) -> bool:
    """Whether a model of transformers is to predict the next token: its loss shifts the labels by one."""
    kind = type(uncompiled(model))
    if not (isinstance(uncompiled(model), PreTrainedModel) and kind.__module__.startswith("transformers.")):
        return False
    encodes = bool(getattr(uncompiled(model).config, "is_encoder_decoder", False))
    return not encodes and (kind.__name__.endswith("ForCausalLM") or kind.__name__ in SHIFTING)

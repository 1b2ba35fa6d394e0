"""Keeps a batch of a Trainer, so that a copy of its model can be asked again when the script has ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn
from transformers import PreTrainedModel

from diagnostics.collectors.pytorch.batch import split_batch
from diagnostics.collectors.pytorch.dependence.kept_pass import (
    KeptPass,
    can_be_kept,
    forwards_by_library,
    on_host,
)
from diagnostics.collectors.pytorch.losses import IGNORE_INDEX
from diagnostics.collectors.pytorch.model import fills_in_tokens, uncompiled
from diagnostics.collectors.pytorch.watch.record.captured_pass import tensors

if TYPE_CHECKING:
    from .first_step import TrainerStepPipeline
    from .pipeline import TrainerPipeline

# Heads whose loss shifts the labels by one, and that are to predict the next token.
SHIFTING = ("GPT2LMHeadModel", "OpenAIGPTLMHeadModel", "BertLMHeadModel")


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
    if pipeline.replaces_loss():
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
    )


def predicts_next_token(model: Any) -> bool:
    """Whether a model of transformers is to predict the next token: its loss shifts the labels by one."""
    kind = type(uncompiled(model))
    if not (isinstance(uncompiled(model), PreTrainedModel) and kind.__module__.startswith("transformers.")):
        return False
    encodes = bool(getattr(uncompiled(model).config, "is_encoder_decoder", False))
    return not encodes and (kind.__name__.endswith("ForCausalLM") or kind.__name__ in SHIFTING)

"""The functions of transformers whose calls by a script are observed."""

from __future__ import annotations

from typing import Any

from .tap import Tap, TrainTap

train = TrainTap("train", "transformers.trainer:Trainer")
evaluation_loop = Tap("evaluation_loop", "transformers.trainer:Trainer")
resize_token_embeddings = Tap("resize_token_embeddings", "transformers.modeling_utils:PreTrainedModel")
log_state_dict_report = Tap("log_state_dict_report", "transformers.modeling_utils")
validate_generated_length = Tap("_validate_generated_length", "transformers.generation.utils:GenerationMixin")
generate = Tap("generate", "transformers.generation.utils:GenerationMixin")


def training_step(trainer: Any) -> Tap:
    """Return the tap of the `training_step` of one Trainer."""
    return Tap("training_step", trainer)

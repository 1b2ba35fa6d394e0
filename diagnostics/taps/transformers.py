"""The functions of transformers whose calls by a script are observed."""

from __future__ import annotations

from typing import Any

from .tap import Tap, TrainTap

train = TrainTap("train", "transformers.trainer:Trainer")
evaluation_loop = Tap("evaluation_loop", "transformers.trainer:Trainer")
resize_token_embeddings = Tap("resize_token_embeddings", "transformers.modeling_utils:PreTrainedModel")


def training_step(trainer: Any) -> Tap:
    """Return the tap of the `training_step` of one Trainer."""
    return Tap("training_step", trainer)

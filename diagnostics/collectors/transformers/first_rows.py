"""Makes a batch of the first rows of a Trainer's training set, with its own collator, and changes nothing."""

from __future__ import annotations

from typing import Any

from torch.utils.data import DataLoader
from transformers import PreTrainedModel, Trainer

from diagnostics.collectors.pytorch.data import collated
from diagnostics.collectors.shared.pipeline import CannotJudge, StageFailed
from diagnostics.collectors.shared.tokens import tokenizer_of

from .kept_run import predicts_next_token
from .pipeline import TrainerPipeline


def trainer_batch(trainer: Trainer, rows: int) -> tuple[Any, Any, bool | None]:
    """Return a batch, the tokenizer, and whether the model shifts the labels itself.

    Raises:
        CannotJudge: the batch cannot be made without a trace.
        StageFailed: there are no rows.
        UsersCodeRaised: the dataset or the collator raised.
    """
    if trainer.train_dataset is None:
        raise StageFailed("The Trainer has no train_dataset. Create it with train_dataset=..., or pass a batch.")
    pipeline = TrainerPipeline(trainer)
    with pipeline.untouched():
        if (reason := pipeline.cannot_restore) is not None:
            raise CannotJudge(f"the effects of making a batch could not be undone: {reason}")
        loader = pipeline.make_loader()
        if not isinstance(loader, DataLoader) or not loader._auto_collation:
            raise CannotJudge(f"the Trainer's loader is a {type(loader).__name__} that collates no rows")
        batch = collated(loader, max(rows, min(trainer.args.per_device_train_batch_size, 32)), pipeline.rows)
    return batch, tokenizer_of(trainer, trainer.data_collator), shifts_labels(trainer.model)


def shifts_labels(model: Any) -> bool | None:
    """Whether a model predicts the next token and shifts the labels itself; None: a model of another library."""
    base = getattr(model, "get_base_model", None)  # of an adapter
    model = base() if callable(base) else model
    if predicts_next_token(model):
        return True
    known = isinstance(model, PreTrainedModel) and type(model).__module__.startswith("transformers.")
    return False if known else None

"""Tells how long a Trainer will train."""

from __future__ import annotations

from transformers import Trainer


def planned_steps(trainer: Trainer) -> int | None:
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

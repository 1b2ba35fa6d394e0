"""Describes the worker processes of a Trainer's own loader."""

from __future__ import annotations

from transformers import Trainer

from diagnostics.collectors.pytorch.worker_generators import facts_of
from diagnostics.facts.data import WorkerFacts


def trainer_workers(trainer: Trainer) -> WorkerFacts | None:
    """Describe the workers of a Trainer's own loader; None if it has none."""
    given = trainer.args
    if not given.dataloader_num_workers:
        return None
    return facts_of(
        given.dataloader_num_workers,
        given.dataloader_persistent_workers,
        trainer.train_dataset,
        trainer.data_collator,
    )

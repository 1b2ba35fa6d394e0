"""Tells what the arguments of a Trainer ask for: its optimizer, its workers, the metric of its best model."""

from __future__ import annotations

import torch
from torch import nn
from transformers import EarlyStoppingCallback, Trainer

from diagnostics.collectors.pytorch.optimizer import OptimizerBuilder, full_rate, like, warms_up
from diagnostics.collectors.pytorch.worker_generators import facts_of
from diagnostics.facts.calls import Monitor, MonitorFacts
from diagnostics.facts.data import WorkerFacts

STEPS_IN_A_RUN = 1000  # for a warm-up that is given as a share of them; any number will do
_FALLING = ("linear", "cosine", "cosine_with_restarts", "polynomial", "constant", "reduce_lr_on_plateau")


def trial_optimizer(
    trainer: Trainer, model: nn.Module
) -> tuple[float | None, OptimizerBuilder | None, bool | None]:
    """See `PyTorchPipeline.trial_optimizer`; without an optimizer yet, what the arguments ask for."""
    args = trainer.args
    warming = _warms_up(trainer)
    if trainer.optimizer is not None:
        return full_rate(trainer.optimizer), like(trainer.optimizer, model), warming
    kind, settings = Trainer.get_optimizer_cls_and_kwargs(args, model)
    if not (isinstance(kind, type) and issubclass(kind, torch.optim.Optimizer)) or "params" in settings:
        return None, None, warming

    def build(copy: nn.Module, factor: float) -> torch.optim.Optimizer:
        trainable = [p for p in copy.parameters() if p.requires_grad]
        rate = settings["lr"] * factor
        rebuilt: torch.optim.Optimizer = kind(trainable, **{**settings, "lr": rate})
        return rebuilt

    return args.learning_rate, build, warming


def _warms_up(trainer: Trainer) -> bool | None:
    """Say whether the rate rises at first; without a schedule yet, whether the arguments ask for it."""
    args = trainer.args
    if trainer.lr_scheduler is not None:
        return warms_up(trainer.lr_scheduler.optimizer)
    if args.get_warmup_steps(STEPS_IN_A_RUN) > 0:
        return True
    return False if args.lr_scheduler_type in _FALLING else None


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


def monitor_facts(trainer: Trainer) -> MonitorFacts | None:
    """Describe it; None where no metric decides what is kept, or when the training stops."""
    args = trainer.args
    metric, rises = args.metric_for_best_model, args.greater_is_better
    if not isinstance(metric, str) or not isinstance(rises, bool):
        return None
    stops = any(isinstance(one, EarlyStoppingCallback) for one in trainer.callback_handler.callbacks)
    if not (args.load_best_model_at_end or stops):
        return None
    return MonitorFacts((Monitor(type(args).__name__, metric, rises, trainer=True),))

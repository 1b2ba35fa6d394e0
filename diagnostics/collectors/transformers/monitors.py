"""Describes in which metric a Trainer looks for progress."""

from __future__ import annotations

from transformers import EarlyStoppingCallback, Trainer

from diagnostics.facts.calls import Monitor, MonitorFacts


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

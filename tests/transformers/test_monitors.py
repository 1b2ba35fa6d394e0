"""The metric in which a Trainer looks for its best model."""

import pytest
from torch import nn
from transformers import EarlyStoppingCallback, Trainer, TrainingArguments

from diagnostics.collectors.transformers.arguments import monitor_facts


def facts(folder, callbacks=(), **options):
    saved = {"eval_strategy": "epoch", "save_strategy": "epoch", "report_to": "none", "use_cpu": True}
    settings = TrainingArguments(str(folder), **saved, **options)
    trainer = Trainer(nn.Linear(2, 2), settings, eval_dataset=[1], callbacks=list(callbacks))
    found = monitor_facts(trainer)
    return found and (found.monitors[0].monitored, found.monitors[0].waits_for_rise)


@pytest.mark.parametrize(
    ("options", "found"),
    [
        ({"metric_for_best_model": "rmse"}, ("rmse", True)),  # as Trainer takes it by default
        ({"metric_for_best_model": "f1", "greater_is_better": False}, ("f1", False)),
        ({}, ("loss", False)),
    ],
)
def test_of_a_trainer_that_loads_the_best_model(tmp_path, options, found):
    assert facts(tmp_path, load_best_model_at_end=True, **options) == found


def test_only_where_it_matters(tmp_path):
    assert facts(tmp_path, metric_for_best_model="rmse", greater_is_better=True) is None
    stops = [EarlyStoppingCallback()]
    assert facts(tmp_path, stops, metric_for_best_model="rmse", greater_is_better=True) == ("rmse", True)

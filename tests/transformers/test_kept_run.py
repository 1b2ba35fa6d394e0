"""Copies of a Trainer's model, trained on the batches that it got."""

import time

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM, BertForSequenceClassification, Trainer, TrainingArguments

from diagnostics.collectors.pytorch.examine.experiments import experiments
from diagnostics.collectors.transformers.kept_run import keep_run

SIZE = {
    "vocab_size": 64,
    "hidden_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "max_position_embeddings": 16,
}


@pytest.fixture
def trainer(tmp_path):
    def make(kind, **options):
        torch.manual_seed(0)
        arguments = TrainingArguments(str(tmp_path), learning_rate=1e-9, report_to=[], use_cpu=True, **options)
        return Trainer(model=kind(BertConfig(**SIZE)), args=arguments)

    return make


def batches(count):
    """Return batches of sequences of several lengths; the label is told by the first token."""
    for number in range(count):
        ids = torch.randint(10, 60, (16, 4 + number % 4))
        yield {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": (ids[:, 0] > 34).long()}


def test_a_rate_of_a_billionth_is_named(trainer):
    made = trainer(BertForSequenceClassification)
    kept = keep_run(made, replaces_loss=False)
    for batch in batches(40):
        kept.step(batch)
    run = kept.run_of(made.model, made.args)
    assert {batch.inputs["1.input_ids"].shape for batch in run.batches} == {(16, 7)}
    found = experiments(run, time.monotonic() + 60, steps=80)
    assert found.cures[0].rule == "learning-rate-too-low"
    assert found.cures[0].fix.startswith("TrainingArguments(..., learning_rate=")


def test_the_constant_prediction_of_tokens_leaves_out_ignored_ones(trainer):
    made = trainer(BertForMaskedLM)
    kept = keep_run(made, replaces_loss=False)
    for batch in batches(40):
        labels = torch.where(torch.rand(batch["input_ids"].shape) < 0.3, 12, -100)
        labels[:, 0] = 11
        kept.step({**batch, "labels": labels})
    found = experiments(kept.run_of(made.model, made.args), time.monotonic() + 60, steps=30)
    assert 0.3 < found.constant < 0.7  # two of 64 tokens ever count, one about twice as often as the other


def test_a_loss_that_is_not_known_is_not_repeated(trainer):
    assert keep_run(trainer(BertForSequenceClassification), replaces_loss=True) is None
    assert (
        keep_run(trainer(BertForSequenceClassification, label_smoothing_factor=0.1), replaces_loss=False) is None
    )


def test_nothing_is_known_without_batches(trainer):
    made = trainer(BertForSequenceClassification)
    assert "not known" in keep_run(made, replaces_loss=False).run_of(made.model, made.args)

"""What stays alive of a Trainer under `diagnose run` once the script has dropped it."""

import gc
import weakref

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import (
    Seq2SeqTrainer,
    Seq2SeqTrainingArguments,
    T5Config,
    T5ForConditionalGeneration,
    Trainer,
    TrainingArguments,
)

from diagnostics.run import second_look
from diagnostics.run.observer import ScriptObserver

STEPS = 24
FEATURES = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, features, labels=None):
        logits = self.layers(features)
        if labels is None:
            return {"logits": logits}
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


class CountingTrainer(Trainer):
    """Keeps what it computes, so that its first step is examined while it runs."""

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        self.draw = iter([len(inputs)])
        return super().compute_loss(model, inputs, return_outputs, num_items_in_batch)


def options(folder):
    return {"output_dir": str(folder), "report_to": "none", "disable_tqdm": True, "save_strategy": "no",
            "use_cpu": True, "per_device_train_batch_size": 16, "max_steps": STEPS}  # fmt: skip


def classifying(folder, kind=Trainer):
    rows = Dataset.from_dict({"features": FEATURES.tolist(), "labels": (FEATURES[:, 0] > 0).long().tolist()})
    return kind(Classifier(), TrainingArguments(**options(folder)), train_dataset=rows, eval_dataset=rows)


def counting(folder):
    return classifying(folder, CountingTrainer)


def translating(folder):
    config = T5Config(vocab_size=32, d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2, pad_token_id=0,
                      decoder_start_token_id=0)  # fmt: skip
    model = T5ForConditionalGeneration(config)
    ids = torch.randint(1, 32, (64, 6), generator=torch.Generator().manual_seed(0)).tolist()
    rows = Dataset.from_dict({"input_ids": ids, "labels": ids})
    arguments = Seq2SeqTrainingArguments(**options(folder), predict_with_generate=True, generation_max_length=6)
    return Seq2SeqTrainer(model, arguments, train_dataset=rows, eval_dataset=rows)


def train_one(make, folder, evaluates):
    """Train, and return weak references to what holds memory."""
    trainer = make(folder)
    trainer.train()
    if evaluates:
        trainer.evaluate()
    optimizer = trainer.optimizer.optimizer
    moments = next(iter(optimizer.state.values()))["exp_avg"]
    held = (trainer, trainer.model, next(trainer.model.parameters()), optimizer, moments)
    return [weakref.ref(each) for each in held]


@pytest.fixture
def run():
    run = ScriptObserver(looks_again=True)
    yield run
    run.close()
    assert run.faults == []


@pytest.mark.parametrize(
    ("make", "evaluates"), [(classifying, False), (classifying, True), (counting, False), (translating, True)]
)
def test_three_trainers_dropped_in_turn_are_gone_and_their_reports_are_there(
    run, make, evaluates, tmp_path, monkeypatch
):
    monkeypatch.setattr(second_look, "MOST_FREED", 0)  # as if the models were large
    for _ in range(3):
        references = train_one(make, tmp_path, evaluates)
        gc.collect()
        assert [reference() for reference in references] == [None] * 5
    reports = run.watched()
    assert [report.history.steps.total_steps for report in reports] == [STEPS] * 3
    assert len(run.examined) == 3

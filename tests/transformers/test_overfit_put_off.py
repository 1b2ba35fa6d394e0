"""The overfit of one batch, which waits for the end of a short training."""

import tempfile

import pytest
import torch
from datasets import Dataset
from sklearn.metrics import accuracy_score
from torch import nn
from transformers import Trainer, TrainingArguments

from diagnostics.facts.pipeline import LossFacts
from diagnostics.facts.trials import TrialFacts
from diagnostics.run.observer import ScriptObserver


class Classifier(nn.Module):
    """Two layers; fails at one of its steps, if told to."""

    def __init__(self, fails_at=None):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
        self.fails_at, self.calls = fails_at, 0

    def forward(self, features, labels=None):
        if self.training and labels is not None:
            self.calls += 1
        if self.fails_at is not None and self.calls > self.fails_at:
            raise ArithmeticError("a step that fails")
        logits = self.layers(features)
        return {"loss": nn.functional.cross_entropy(logits, labels), "logits": logits}


def rows():
    features = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))
    return Dataset.from_dict({"features": features.tolist(), "labels": (features[:, 0] > 0).long().tolist()})


def trained(model, raises=None, compute_metrics=None, **settings):
    arguments = TrainingArguments(
        output_dir=tempfile.mkdtemp(), report_to="none", disable_tqdm=True, save_strategy="no", use_cpu=True,
        per_device_train_batch_size=16, **settings,
    )  # fmt: skip
    early = []
    run = ScriptObserver(on_examined=early.append)
    try:
        held_out = None if compute_metrics is None else rows()
        trainer = Trainer(
            model, arguments, train_dataset=rows(), eval_dataset=held_out, compute_metrics=compute_metrics
        )
        if raises is None:
            trainer.train()
        else:
            with pytest.raises(raises):
                trainer.train()
    finally:
        run.close()
    assert run.faults == []
    (training,) = run.trainings
    assert training.walk is None
    return overfit(early[0]), training.examined


def overfit(report):
    (stage,) = (stage for stage in report.stages if stage.name == "one-batch overfit")
    return stage.status, stage.detail


def test_a_training_that_learns_needs_none():
    early, examined = trained(Classifier(), max_steps=60, learning_rate=0.02, lr_scheduler_type="constant")
    waits = "it waits for the end of the training, which may show that the model learns"
    assert early == ("not judged", waits)
    assert overfit(examined) == ("not judged", "not needed: the loss of the training itself fell")
    assert examined.findings == ()


def test_one_that_does_not_learn_gets_it_from_the_weights_that_it_began_with():
    _, examined = trained(
        Classifier(), max_steps=40, optim="sgd", learning_rate=1e-7, lr_scheduler_type="constant"
    )
    assert overfit(examined)[0] == "passed"
    facts = {type(fact): fact for fact in examined.facts}
    assert facts[TrialFacts].losses[0] == pytest.approx(facts[LossFacts].value, rel=1e-5)
    assert [finding.rule for finding in examined.findings] == ["learning-rate-too-low"]


def test_one_that_fails_gets_none():
    _, examined = trained(Classifier(fails_at=10), raises=ArithmeticError, max_steps=40)
    assert overfit(examined) == ("not judged", "the training ended before its last step")


def test_a_long_one_gets_it_first():
    early, _ = trained(Classifier(fails_at=60), raises=ArithmeticError, max_steps=2000, learning_rate=0.02)
    assert early[0] == "passed"


def accuracy_of_logits(evaluation):
    return {"accuracy": accuracy_score(evaluation.label_ids, evaluation.predictions)}


def test_one_whose_examination_ends_at_the_metric_gets_none():
    early, examined = trained(
        Classifier(),
        raises=ValueError,
        compute_metrics=accuracy_of_logits,
        max_steps=10,
        eval_strategy="steps",
        eval_steps=10,
    )
    assert early == overfit(examined) == ("not reached", "")

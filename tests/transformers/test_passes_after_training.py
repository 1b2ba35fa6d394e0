"""What the model is called with once the Trainer is done with it."""

import pytest
import torch
from datasets import Dataset
from torch import nn
from transformers import Trainer, TrainingArguments

from diagnostics.run.observer import ScriptObserver

FEATURES = torch.randn(64, 4, generator=torch.Generator().manual_seed(0))


class Classifier(nn.Module):
    """Normalises by the batch."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 2))

    def forward(self, features, labels=None):
        logits = self.layers(features)
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return {"loss": loss, "logits": logits} if loss is not None else {"logits": logits}


@pytest.mark.parametrize(
    ("evaluates", "with_gradients_before", "found"),
    [(False, False, True), (True, False, False), (False, True, False)],
)
def test_in_training_mode_is_named(tmp_path, evaluates, with_gradients_before, found):
    arguments = TrainingArguments(
        output_dir=str(tmp_path), report_to="none", disable_tqdm=True, save_strategy="no", use_cpu=True,
        per_device_train_batch_size=16, max_steps=24,
    )  # fmt: skip
    rows = Dataset.from_dict({"features": FEATURES.tolist(), "labels": (FEATURES[:, 0] > 0).long().tolist()})
    run, model = ScriptObserver(), Classifier()
    try:
        Trainer(model, arguments, train_dataset=rows).train()
        model.train(not evaluates)
        if with_gradients_before:  # another training: what follows is no longer about this one
            model(FEATURES)["logits"].sum().backward()
        with torch.no_grad():
            for part in FEATURES.split(8):
                model(part)
    finally:
        run.close()
    assert run.faults == []
    assert not model._forward_hooks
    assert not model._forward_pre_hooks
    (report,) = run.watched()
    assert ("train-mode-evaluation" in {finding.rule for finding in report.findings}) == found

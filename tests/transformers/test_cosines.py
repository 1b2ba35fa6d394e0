"""The loss of a Trainer that is seen in its first step alone, where it compares cosines with scores."""

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader
from transformers import Trainer, TrainingArguments, set_seed

from diagnostics.run.observer import ScriptObserver


class Twins(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 8))

    def forward(self, x):
        return self.net(x)


class CosineTrainer(Trainer):
    """Compares two embeddings with a score, with a loader of its own: it is seen in its first step alone."""

    def get_train_dataloader(self):
        return DataLoader(self.train_dataset, batch_size=8)

    def compute_loss(self, model, inputs, return_outputs=False, num_items_in_batch=None):
        cosines = nn.functional.cosine_similarity(model(inputs["left"]), model(inputs["right"]))
        return nn.functional.mse_loss(cosines, inputs["labels"])


@pytest.mark.parametrize(("most", "is_named"), [(1.0, False), (5.0, True)])
def test_scores_that_no_cosine_reaches(tmp_path, most, is_named):
    set_seed(0)
    rows = [{"left": torch.randn(6), "right": torch.randn(6), "labels": most * (31 - n) / 31} for n in range(32)]
    settings = TrainingArguments(
        str(tmp_path), report_to="none", max_steps=2, disable_tqdm=True, save_strategy="no", use_cpu=True,
        remove_unused_columns=False,
    )  # fmt: skip
    run = ScriptObserver()
    try:
        CosineTrainer(Twins(), settings, train_dataset=rows).train()
    finally:
        run.close()
    assert run.faults == []
    assert ("targets-out-of-reach" in [found.rule for found in run.examined[0].findings]) == is_named

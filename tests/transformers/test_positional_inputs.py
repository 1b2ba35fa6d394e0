"""A loop of the script's own that gives a model of transformers its arguments by their place."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification

from diagnostics.run.observer import ScriptObserver

IDS = torch.randint(4, 30, (64, 8), generator=torch.Generator().manual_seed(0))
MASK = (torch.arange(8) < torch.tensor([8, 5]).repeat(32)[:, None]).long()
LABELS = IDS[:, 2] % 2


@pytest.fixture
def run():
    torch.manual_seed(0)
    made = ScriptObserver()
    yield made
    made.close()
    assert made.faults == []


def train(called):
    settings = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
    model = BertForSequenceClassification(BertConfig(vocab_size=30, **settings))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for ids, mask, labels in DataLoader(TensorDataset(IDS * MASK, MASK, LABELS), batch_size=16):
        optimizer.zero_grad()
        called(model, ids, mask, labels).loss.backward()
        optimizer.step()


@pytest.mark.parametrize(
    "called",
    [
        lambda model, ids, mask, labels: model(ids, attention_mask=mask, labels=labels),
        lambda model, ids, mask, labels: model(ids, mask, labels=labels),
        lambda model, ids, mask, labels: model(input_ids=ids, attention_mask=mask, labels=labels),
    ],
    ids=["ids", "ids and mask", "none"],
)
def test_are_named_as_the_model_names_them(run, called):
    train(called)
    (report,) = run.examined
    batch = next(stage for stage in report.stages if stage.name == "batch")
    assert batch.detail == "16 examples: input_ids (16, 8), attention_mask (16, 8), labels (16,)"


def test_a_mask_that_is_missing_is_seen(run):
    train(lambda model, ids, mask, labels: model(ids, labels=labels))
    assert "attention-mask-missing" in {finding.rule for finding in run.examined[0].findings}

"""Rows that a collator, or the loop, puts into another order than their targets."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset

from diagnostics.run.observer import ScriptObserver

GIVEN = torch.Generator().manual_seed(0)
LENGTHS = torch.randint(3, 12, (64,), generator=GIVEN).tolist()
TEXTS = [torch.randint(1, 50, (length,), generator=GIVEN) for length in LENGTHS]
LABELS = torch.randint(0, 3, (64,), generator=GIVEN)
ROWS = torch.randn(64, 5, generator=GIVEN)


class Mean(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.out = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, ids):
        return self.out(self.embedding(ids).mean(1))


def found(loader, loop, model):
    run, collate = ScriptObserver(), loader.collate_fn
    try:
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for batch in loader:
            optimizer.zero_grad()
            loop(model, batch).backward()
            optimizer.step()
    finally:
        run.close()
    assert not run.faults
    assert loader.collate_fn is collate
    return [one for report in run.examined for one in report.findings if one.rule == "labels-unrelated"]


def plain(model, batch):
    return nn.functional.cross_entropy(model(batch[0]), batch[1])


def texts_sorted_alone(items):
    texts, labels = zip(*items, strict=True)
    return pad_sequence(sorted(texts, key=len, reverse=True), batch_first=True), torch.tensor(labels)


def of_dicts(items):
    order = sorted(range(len(items)), key=lambda place: len(items[place]["text"]))
    texts = [items[place]["text"] for place in order]
    return pad_sequence(texts, batch_first=True), torch.tensor([item["label"] for item in items])


def sorted_together(items):
    items.sort(key=lambda item: len(item[0]), reverse=True)
    texts, labels = zip(*items, strict=True)
    return pad_sequence(texts, batch_first=True), torch.tensor(labels)


def as_they_are(items):
    texts, labels = zip(*items, strict=True)
    return pad_sequence(texts, batch_first=True), torch.tensor(labels)


def texts(collate, named=False):
    pairs = list(zip(TEXTS, LABELS.tolist(), strict=True))
    rows = [{"text": text, "label": label} for text, label in pairs] if named else pairs
    return DataLoader(rows, batch_size=16, shuffle=True, collate_fn=collate)


@pytest.mark.parametrize("collate", [texts_sorted_alone, of_dicts])
def test_a_collator_that_moves_the_inputs_alone_is_found(collate):
    (finding,) = found(texts(collate, named=collate is of_dicts), plain, Mean())
    assert finding.severity == "error"
    assert "the collator reorders them, for instance by length" in finding.message


@pytest.mark.parametrize("collate", [sorted_together, as_they_are])
def test_a_collator_that_moves_whole_examples_is_left_alone(collate):
    assert found(texts(collate), plain, Mean()) == []


def loader_of_rows():
    return DataLoader(TensorDataset(ROWS, LABELS), batch_size=16)


def test_a_loop_that_moves_the_inputs_alone_is_found():
    def loop(model, batch):
        return nn.functional.cross_entropy(model(batch[0][torch.randperm(16)]), batch[1])

    (finding,) = found(loader_of_rows(), loop, nn.Linear(5, 3))
    assert "the script reorders them between loader and model" in finding.message


def moved_together(model, batch):
    order = torch.randperm(16)
    return nn.functional.cross_entropy(model(batch[0][order]), batch[1][order])


def answers_put_back(model, batch):
    order = torch.randperm(16)
    return nn.functional.cross_entropy(model(batch[0][order])[order.argsort()], batch[1])


def mixed_up(model, batch):
    order = torch.randperm(16)
    answers = model(0.7 * batch[0] + 0.3 * batch[0][order])
    first, second = (nn.functional.cross_entropy(answers, labels) for labels in (batch[1], batch[1][order]))
    return 0.7 * first + 0.3 * second


@pytest.mark.parametrize("loop", [moved_together, answers_put_back, mixed_up, plain])
def test_rows_that_are_moved_on_purpose_are_left_alone(loop):
    assert found(loader_of_rows(), loop, nn.Linear(5, 3)) == []


def test_an_error_of_the_collator_is_its_own():
    def collate(items):
        raise ValueError("of the collator")

    with pytest.raises(ValueError, match="of the collator"):
        found(texts(collate), plain, Mean())


def test_images_with_a_blank_border_in_another_order_than_their_labels():
    images = torch.zeros(64, 1, 28, 28)
    images[:, :, 4:24, 4:24] = torch.rand(64, 1, 20, 20, generator=GIVEN)
    loader = DataLoader(TensorDataset(images, LABELS), batch_size=32)
    model = nn.Sequential(nn.Flatten(), nn.Linear(784, 3))
    order = torch.randperm(32, generator=torch.Generator().manual_seed(1))

    def shuffled(model, batch):
        return nn.functional.cross_entropy(model(batch[0][order]), batch[1])

    (finding,) = found(loader, shuffled, model)
    assert finding.message.startswith("In the first batch, all 32 input rows changed position")
    assert not found(loader, plain, model)

"""Compares real trainings that differ in one thing."""

import random

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import diagnostics
from diagnostics.report.diff import diff_reports


def train(path, seed=0, rate=0.1, dropout=0.0, backwards=False, shuffle=True):
    random.seed()  # as in a script that does not seed it
    torch.manual_seed(seed)
    x = torch.arange(128 * 4).reshape(128, 4).float() / 512
    y = (x.sum(1) > 1).long()
    if backwards:
        x, y = x.flip(0), y.flip(0)
    model = nn.Sequential(nn.Linear(4, 16), nn.Dropout(dropout), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with diagnostics.watch(model, optimizer) as watch:
        for inputs, labels in DataLoader(TensorDataset(x, y), batch_size=16, shuffle=shuffle):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss)
    return watch.report().save(path)


@pytest.fixture
def compared(tmp_path):
    def compare(**change):
        base = {"shuffle": False} if "backwards" in change else {}
        return diff_reports(train(tmp_path / "a.json", **base), train(tmp_path / "b.json", **{**base, **change}))

    return compare


def kinds(found):
    return [one.kind for one in found.differences]


def test_the_same_run_twice_has_no_difference(compared):
    assert compared().verdict == "No difference."


def test_one_seed(compared):
    found = compared(seed=1)
    assert found.verdict.startswith(
        "The runs differ in one seed (seed of torch: 0 → 1). The initial weights, the "
    )
    assert kinds(found)[:4] == ["seed", "initial weights", "order of the rows", "first step that differs"]


def test_one_setting(compared):
    found = compared(rate=0.2)
    assert found.verdict.startswith("The runs differ in one setting (lr: 0.1 → 0.2). The losses")
    assert found.differences[1].name == "step 1"


def test_one_setting_of_a_layer(compared):
    assert (
        "layer 1: Dropout(p=0.0, inplace=False) → Dropout(p=0.5, inplace=False)" in compared(dropout=0.5).verdict
    )


def test_one_order_of_the_rows(compared):
    found = compared(backwards=True)
    assert found.verdict.startswith(
        "The runs train on the same rows in another order; all before that is the same."
    )
    assert kinds(found)[0] == "order of the rows"
    assert found.notes == (
        "Global random states differ when the training begins: random. They always do if the script does not seed "
        "them; it matters only if the script draws from them.",
    )


def test_a_batch_that_cannot_be_hashed_is_left_out(tmp_path):
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters())
    with diagnostics.watch(model, optimizer) as watch:
        for rows in (0, 3):
            model(torch.ones(rows, 4)).sum().backward()
            optimizer.step()
    report = watch.report()
    assert report.faults == ()
    assert [len(rows) for rows in report.fingerprints[0].start.rows.values()] == [3]


def test_a_layer_without_an_attribute_of_its_own_is_left_out():
    model = nn.Sequential(nn.Linear(4, 2), nn.Dropout(0.5))
    del model[0].in_features
    optimizer = torch.optim.SGD(model.parameters())
    with diagnostics.watch(model, optimizer) as watch:
        model(torch.ones(3, 4)).sum().backward()
        optimizer.step()
    report = watch.report()
    assert report.faults == ()
    settings = report.fingerprints[0].start.settings
    assert [name for name in settings if name.startswith("layer ")] == ["layer 1"]

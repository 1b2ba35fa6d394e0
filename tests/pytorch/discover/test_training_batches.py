"""Recording the batches of a loop: what is kept, how much of it, and when it ends."""

import gc
import weakref
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.discover import training_batches
from diagnostics.collectors.pytorch.discover.training_batches import MOST, TrainingBatches


@pytest.fixture
def loop():
    """Return a model, its optimizer, and what begins to record their training."""
    torch.manual_seed(0)
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    begun = []

    def begin(function):
        seen = SimpleNamespace(call=None, given=((), {}))
        step = SimpleNamespace(model=model, optimizers=[optimizer], seen=seen)
        begun.append(TrainingBatches(step, function, FaultGuard(on_fault=pytest.fail)))
        return begun[-1]

    yield model, optimizer, begin
    for recorder in begun:
        recorder.close()


def train(model, optimizer, steps, loss=F.mse_loss):
    given = []
    for step in range(steps):
        x, y = torch.randn(8, 3), torch.randn(8, 1)
        given.append((x, y))
        optimizer.param_groups[0]["lr"] = 0.1 / (1 + step)
        optimizer.zero_grad()
        loss(model(x), y).backward()
        optimizer.step()
    return given


def test_each_batch_is_kept_with_target_shape_and_rate(loop):
    model, optimizer, begin = loop
    recorder = begin("mse_loss")
    given = train(model, optimizer, 5)
    assert [batch.rate for batch in recorder.batches] == [0.1 / (1 + step) for step in range(5)]
    assert all(batch.shape == (8, 1) for batch in recorder.batches)
    for batch, (x, y) in zip(recorder.batches, given, strict=True):
        assert torch.equal(batch.inputs["0.0"], x)
        assert torch.equal(batch.target, y)


def test_what_the_script_changes_later_stays_as_it_was(loop):
    model, optimizer, begin = loop
    recorder = begin("mse_loss")
    ((x, _),) = train(model, optimizer, 1)
    before = x.clone()
    x.zero_()
    assert torch.equal(recorder.batches[0].inputs["0.0"], before)


def test_one_batch_that_is_trained_on_in_each_step_is_kept_once(loop):
    model, _, begin = loop
    recorder = begin("mse_loss")
    x, y = torch.randn(8, 3), torch.randn(8, 1)
    for _ in range(3):
        F.mse_loss(model(x), y).backward()
    assert len({batch.inputs["0.0"].data_ptr() for batch in recorder.batches}) == 1
    assert len(recorder.batches) == 3


def test_evaluations_are_not_recorded(loop):
    model, _, begin = loop
    recorder = begin("mse_loss")
    with torch.no_grad():
        F.mse_loss(model(torch.randn(8, 3)), torch.randn(8, 1))
    assert recorder.batches == []


def test_recording_ends_when_there_are_enough(loop, monkeypatch):
    model, optimizer, begin = loop
    recorder = begin("mse_loss")
    train(model, optimizer, MOST + 5)
    assert len(recorder.batches) == MOST
    monkeypatch.setattr(training_batches, "MOST_BYTES", 1000)
    small = begin("mse_loss")
    train(model, optimizer, 50)
    assert len(small.batches) == 8  # of 128 bytes each


def test_targets_of_a_loss_that_is_written_out_are_recovered(loop):
    model, optimizer, begin = loop
    recorder = begin("")
    given = train(model, optimizer, 6, lambda prediction, y: ((prediction - y) ** 2).mean())
    function, batches = recorder.recovered()
    assert function == "mse_loss"
    assert all(torch.allclose(b.target, y, atol=1e-4) for b, (_, y) in zip(batches, given, strict=True))


def test_targets_of_a_loss_without_a_known_formula_are_not(loop):
    model, optimizer, begin = loop
    recorder = begin("")
    train(model, optimizer, 6, lambda prediction, y: ((prediction - y).abs() ** 1.5).mean())
    assert recorder.recovered() is None


def test_a_model_that_the_script_has_freed_ends_it():
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = SimpleNamespace(model=model, optimizers=[optimizer], seen=SimpleNamespace(call=None, given=((), {})))
    recorder = weakref.ref(TrainingBatches(step, "mse_loss", FaultGuard(on_fault=pytest.fail)))
    train(model, optimizer, 2)
    assert recorder() is not None
    del model, optimizer, step
    gc.collect()
    nn.Linear(1, 1)(torch.ones(1, 1))
    gc.collect()
    assert recorder() is None

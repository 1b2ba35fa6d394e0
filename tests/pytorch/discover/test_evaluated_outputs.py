"""The outputs of passes without gradients wait for a metric, and for no longer than the next step."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch import evaluated_outputs
from diagnostics.collectors.pytorch.evaluated_outputs import EvaluatedOutputs

ROWS = torch.arange(24.0).reshape(12, 2)


@pytest.fixture
def outputs():
    faults = []
    kept = EvaluatedOutputs(FaultGuard(on_fault=faults.append))
    yield kept
    kept.close()
    assert faults == []


def test_joins_the_latest_passes_of_one_model(outputs):
    model, other = nn.Linear(2, 3), nn.Linear(2, 3)
    with torch.no_grad():
        model(ROWS)
        other(ROWS[:7])
        whole = torch.cat([model(ROWS[:5]), model(ROWS[5:])])
        nn.CrossEntropyLoss()(whole, torch.zeros(12).long())
    values, rows = outputs.of_rows(12)
    assert (values == whole.numpy()).all()
    assert rows == (5, 7)
    assert len(outputs.of_rows(24)[0]) == 24
    assert outputs.of_rows(9) is None
    assert outputs.passes == 5


def test_forgets_them_at_a_step(outputs):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with torch.no_grad():
        model(ROWS)
    model(ROWS).sum().backward()
    assert outputs.of_rows(12) is not None
    optimizer.step()
    assert outputs.of_rows(12) is None
    assert outputs.steps == 1


def test_keeps_a_copy_of_what_the_script_may_change(outputs):
    with torch.inference_mode():
        answers = nn.Identity()(ROWS.clone())
        answers.zero_()
    assert outputs.of_rows(12)[0].any()


def test_keeps_the_latest_within_its_bounds(outputs, monkeypatch):
    monkeypatch.setattr(evaluated_outputs, "LARGEST", 30)
    with torch.no_grad():
        for _ in range(3):
            nn.Identity()(ROWS)
    assert len(outputs._outputs) == 1

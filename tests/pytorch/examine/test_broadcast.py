"""A loss of the user's own that stretches a column and a row to a square, as `examine` sees it."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics

INPUTS = torch.randn(64, 5, generator=torch.Generator().manual_seed(0))
PRICES = INPUTS.sum(1)
LOSSES = {
    "root": lambda p, y: F.mse_loss(p, y).sqrt(),
    "weighted": lambda p, y: (F.huber_loss(p, y, reduction="none") * (1 + y.abs())).mean(),
    "by hand": lambda p, y: (p - y).pow(2).mean().sqrt(),
}


def found(loss, prices):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(INPUTS, prices), batch_size=16)
    report = diagnostics.examine(model, loader, loss_fn=loss, optimizer=torch.optim.Adam(model.parameters()))
    return [finding.rule for finding in report.findings]


@pytest.mark.filterwarnings("ignore:Using a target size")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_is_named(loss):
    assert found(loss, PRICES)[0] == "broadcast-loss"


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
def test_is_not_found_among_columns(loss):
    assert "broadcast-loss" not in found(loss, PRICES[:, None])

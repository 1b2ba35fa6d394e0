"""Which shapes the graph of a loss written by hand shows to be stretched."""

import pytest
import torch

from diagnostics.collectors.pytorch.discover.first_step import _graph
from diagnostics.collectors.pytorch.discover.graph_shapes import difference_of, stretched_operands

COLUMN, ROW = torch.randn(8, 1), torch.randn(8)


def answers(column):
    return (torch.ones(8, 3, requires_grad=True) @ torch.ones(3, 1))[:, :1] if column else answers(True).squeeze(1)


LOSSES = {
    "root": lambda p, y: torch.sqrt(torch.mean(torch.pow(p - y, 2))),
    "other way round": lambda p, y: (y - p).abs().mean(),
    "log-cosh": lambda p, y: torch.log(torch.cosh(p - y + 1e-12)).mean(),
    "by hand": lambda p, y: torch.where((p - y).abs() < 1, (p - y) ** 2, (p - y).abs()).sum(),
}


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("column", [True, False])
def test_finds_a_column_less_a_row(loss, column):
    prediction, target = answers(column), ROW if column else COLUMN
    operands = stretched_operands(_graph(loss(prediction, target)))
    assert operands == (tuple(prediction.shape),)
    found = difference_of(operands, prediction.detach(), target)
    assert (found.prediction, found.target, found.traced) == (tuple(prediction.shape), tuple(target.shape), False)


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
@pytest.mark.parametrize("column", [True, False])
def test_silent_on_equal_shapes(loss, column):
    assert stretched_operands(_graph(loss(answers(column), COLUMN if column else ROW))) == ()


def test_silent_on_pairs_of_answers_and_on_other_squares():
    scores = answers(True)
    pairs = torch.relu(1 - (scores - scores.T)).mean()
    assert stretched_operands(_graph(pairs)) == ()
    quantiles = (answers(True) - torch.linspace(0, 1, 5)).abs().mean()
    assert stretched_operands(_graph(quantiles)) == ()
    kernel = torch.exp(
        -((answers(True) - ROW) ** 2)
    ).mean()  # with samples that the loader did not give as targets
    operands = stretched_operands(_graph(kernel))
    assert difference_of(operands, answers(True).detach(), None) is None
    assert difference_of(operands, answers(True).detach(), COLUMN) is None
    assert difference_of(operands, torch.zeros(8, 2), ROW) is None

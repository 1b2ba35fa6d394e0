"""Scores of a cross entropy that are cosines times a constant, as the graph of a loss shows them."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from diagnostics.collectors.pytorch.discover.loss_graph.bounded_scores import cosine_scores
from diagnostics.collectors.pytorch.discover.loss_graph.graph_shapes import graph_nodes


def found(scores_of, normalised=True):
    torch.manual_seed(0)
    one, other = (torch.randn(12, 5, requires_grad=True) for _ in range(2))
    if normalised:
        one, other = F.normalize(one, dim=1), F.normalize(other, dim=1)
    loss = F.cross_entropy(scores_of(one, other), torch.arange(12))
    return cosine_scores(graph_nodes(2 * loss + 1))


@pytest.mark.parametrize(
    ("scores_of", "factor"),
    [
        (lambda a, b: a @ b.t() * 0.07, 0.07),
        (lambda a, b: a @ b.t() / 0.07, 1 / 0.07),
        (lambda a, b: (torch.tensor(0.1) * (a @ b.T)).t(), 0.1),
        (lambda a, b: F.linear(a, b), 1.0),
    ],
    ids=["multiplied", "divided", "transposed", "no factor"],
)
def test_cosines_and_their_constant(scores_of, factor):
    scores = found(scores_of)
    assert scores.classes == 12
    assert scores.factor == pytest.approx(factor, rel=1e-3)


def test_nothing_of_other_scores():
    assert found(lambda a, b: a @ b.t() * 0.07, normalised=False) is None
    assert found(lambda a, b: a @ b.t() * 0.07 + 1) is None


def test_nothing_of_a_factor_that_is_learned():
    scale = torch.nn.Parameter(torch.tensor(0.0))
    assert found(lambda a, b: a @ b.t() * scale.exp()) is None

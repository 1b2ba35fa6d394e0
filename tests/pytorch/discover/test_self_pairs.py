"""Scores of rows with themselves, in the first cross entropy of a contrastive loss."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.run.observer import ScriptObserver

ROWS = torch.randn(16, 6, generator=torch.Generator().manual_seed(0))


def found(loss_of):
    run = ScriptObserver()
    try:
        torch.manual_seed(0)
        model = nn.Linear(6, 8)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model(ROWS), model(ROWS + 0.1 * torch.randn_like(ROWS))).backward()
            optimizer.step()
    finally:
        run.close()
    assert not run.faults
    return {finding.rule for report in run.examined for finding in report.findings}


def kept(one, other):
    z = F.normalize(torch.cat([one, other]), dim=1)
    return F.cross_entropy(z @ z.T / 0.5, torch.arange(len(z)).roll(len(one)))


def two_views(one, other):
    return F.cross_entropy(F.normalize(one, dim=1) @ F.normalize(other, dim=1).T / 0.1, torch.arange(len(one)))


def test_a_diagonal_that_is_left_in_is_found():
    assert "self-pairs-in-loss" in found(kept)


def test_scores_of_two_views_are_not():
    assert "self-pairs-in-loss" not in found(two_views)

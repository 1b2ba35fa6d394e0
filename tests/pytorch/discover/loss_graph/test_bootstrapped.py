"""Targets that the trained weights compute, found in the graph of a loss of Q-learning."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.run.observer import ScriptObserver

GIVEN = torch.Generator().manual_seed(0)
STATE, NEXT = torch.randn(32, 6, generator=GIVEN), torch.randn(32, 6, generator=GIVEN)
ACTION = torch.randint(0, 3, (32, 1), generator=GIVEN)
REWARD, GOES_ON = torch.rand(32, generator=GIVEN), (torch.rand(32, generator=GIVEN) < 0.9).float()


def found(loss_of):
    run = ScriptObserver()
    try:
        torch.manual_seed(0)
        model, other = nn.Linear(6, 3), nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model, other).backward()
            optimizer.step()
    finally:
        run.close()
    assert not run.faults
    return {finding.rule for report in run.examined for finding in report.findings}


def highest(net):
    return REWARD + 0.9 * net(NEXT).max(1)[0] * GOES_ON


def gathered(net):
    following = net(NEXT)
    return REWARD.unsqueeze(1) + 0.9 * following.gather(1, following.argmax(1, keepdim=True))


def squared_by_hand(net, _):
    return (highest(net) - net(STATE)[torch.arange(32), ACTION[:, 0]]).pow(2).mean()


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda net, _: F.mse_loss(net(STATE).gather(1, ACTION).squeeze(1), highest(net)),
        lambda net, _: F.smooth_l1_loss(net(STATE).gather(1, ACTION), highest(net).unsqueeze(1)),
        lambda net, _: F.mse_loss(net(STATE).gather(1, ACTION), gathered(net)),
        squared_by_hand,
    ],
    ids=["highest", "huber", "chosen", "by hand"],
)
def test_a_target_of_the_same_weights_is_found(loss_of):
    assert "undetached-target" in found(loss_of)


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda net, _: F.mse_loss(net(STATE).gather(1, ACTION).squeeze(1), highest(net).detach()),
        lambda net, other: F.mse_loss(net(STATE).gather(1, ACTION).squeeze(1), highest(other)),
        lambda net, _: F.mse_loss(net(STATE), 0.9 * net(NEXT) + 0.1),
        lambda net, _: (net(STATE).max(1)[0] - net(STATE).gather(1, ACTION).squeeze(1) + 1).relu().mean(),
        lambda net, _: F.mse_loss(net(STATE).max(1)[0], net(NEXT).max(1)[0]),
    ],
    ids=["detached", "a target network", "a recurrence", "a margin", "views of one row"],
)
def test_others_are_not(loss_of):
    assert "undetached-target" not in found(loss_of)

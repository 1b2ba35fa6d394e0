"""Which way the loss pushes predictions, by its gradient, and by its formula."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics
from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.facts.course import NegatedLoss, OpposedGradients

DRAW = torch.Generator().manual_seed(0)
IMAGES = torch.rand(24, 1, 8, 8, generator=DRAW)
MASKS = (F.avg_pool2d(IMAGES, 3, 1, 1) > 0.5).float()
ROWS = torch.randn(64, 5, generator=DRAW)
NUMBERS = ROWS[:, :1] - 2 * ROWS[:, 1:2]
CLASSES = (ROWS[:, 0] > 0).long() + (ROWS[:, 1] > 1).long()
DATA = object()


def dice(out, target):
    return (2 * (out * target).sum() + 1) / (out.sum() + target.sum() + 1)


def iou_of_logits(out, target):
    out = out.sigmoid()
    both = (out * target).sum()
    return both / (out.sum() + target.sum() - both)


def r_squared(out, target):
    return 1 - (out - target).square().sum() / (target - target.mean()).square().sum()


def watched(loss_of, inputs, target, model, maximize=False, steps=40):
    torch.manual_seed(0)
    for layer in model.modules():
        if hasattr(layer, "reset_parameters"):
            layer.reset_parameters()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, maximize=maximize)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(steps):
            batch = [inputs.clone(), target.clone()]
            latest_batch.gives(batch, DATA)
            optimizer.zero_grad()
            loss = loss_of(model(batch[0]), batch[1])
            loss.backward()
            optimizer.step()
            watch.step(loss)
    return {type(fact): fact for fact in watch._report().facts}


def of_images(loss_of, maximize=False, target=MASKS, end=nn.Sigmoid):
    model = nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), nn.Conv2d(4, 1, 1), end())
    return watched(loss_of, IMAGES, target, model, maximize)


def of_rows(loss_of, target=NUMBERS, maximize=False, outputs=1):
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, outputs))
    return watched(loss_of, ROWS, target, model, maximize)


def share_of(facts):
    seen = facts[OpposedGradients]
    return seen.opposed / seen.steps


@pytest.mark.parametrize(("score", "end"), [(dice, nn.Sigmoid), (iou_of_logits, nn.Identity)])
def test_a_score_of_masks_that_is_minimised(score, end):
    facts = of_images(score, end=end)
    assert facts[OpposedGradients].of_masks
    assert share_of(facts) == 1
    assert share_of(of_images(lambda out, target: 1 - score(out, target), end=end)) == 0
    assert share_of(of_images(lambda out, target: -score(out, target), end=end)) == 0
    assert share_of(of_images(score, maximize=True, end=end)) == 0


def test_a_mask_that_weighs_the_loss_is_no_target():
    assert share_of(of_images(lambda out, mask: ((out - 1).square() * mask).mean())) == 0


def test_the_share_of_the_variance_that_is_minimised():
    assert share_of(of_rows(r_squared)) > 0.9
    assert share_of(of_rows(lambda out, target: 1 - r_squared(out, target))) == 0


def test_a_cost_that_is_minimised_is_right():
    costs = 4 * ROWS[:, :3] + 1
    facts = of_rows(lambda out, cost: (out.softmax(1) * cost).sum(1).mean(), costs, outputs=3)
    assert share_of(facts) == 0
    assert share_of(of_rows(lambda out, cost: (out * cost).mean(), costs, outputs=3)) == 0


NEGATED = {
    "minus a criterion": (lambda out, y: -F.mse_loss(out, y), NUMBERS, "mean_squared_error", 1),
    "by hand": (lambda out, y: -((out - y) ** 2).mean(), NUMBERS, "mean_squared_error", 1),
    "cross entropy": (lambda out, y: -F.cross_entropy(out, y), CLASSES, "cross_entropy", 3),
    "likelihood": (lambda out, y: out.log_softmax(1).gather(1, y[:, None]).mean(), CLASSES, "cross_entropy", 3),
}


@pytest.mark.parametrize("name", NEGATED)
def test_the_negative_of_a_loss(name):
    loss_of, target, kind, outputs = NEGATED[name]
    found = of_rows(loss_of, target, outputs=outputs)[NegatedLoss]
    assert (found.kind, found.one_target, found.maximized) == (kind, False, False)
    assert found.last > found.first > 0
    assert NegatedLoss not in of_rows(loss_of, target, maximize=True, outputs=outputs)


def test_a_loss_that_is_maximised():
    found = of_rows(F.mse_loss, maximize=True)[NegatedLoss]
    assert (found.kind, found.maximized) == ("mean_squared_error", True)
    assert NegatedLoss not in of_rows(F.mse_loss)


def test_one_target_is_told():
    zeros = torch.zeros(64, dtype=torch.long)
    assert of_rows(lambda out, y: -F.cross_entropy(out, y), zeros, outputs=3)[NegatedLoss].one_target

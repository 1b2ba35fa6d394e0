"""Masks and boxes that a loop gives its loss."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import diagnostics

SIDE = 16
RNG = np.random.default_rng(0)
CORNERS = torch.tensor(RNG.integers(0, SIDE - 6, (96, 2)))
BOXES = torch.cat([CORNERS, CORNERS + 6], dim=1) / SIDE
PLACES = torch.arange(SIDE)
INSIDE = (CORNERS[..., None] <= PLACES) & (CORNERS[..., None] + 6 > PLACES)
MASKS = (INSIDE[:, 1, :, None] & INSIDE[:, 0, None]).float()
IMAGES = MASKS[:, None] + torch.tensor(RNG.normal(0, 0.1, (96, 1, SIDE, SIDE))).float()


def named(step, boxes=False, model=None):
    torch.manual_seed(0)
    rest = [nn.Flatten(), nn.Linear(4 * SIDE * SIDE, 4)] if boxes else [nn.Conv2d(4, 1, 1), nn.Flatten(0, 1)]
    model = model or nn.Sequential(nn.Conv2d(1, 4, 3, padding=1), nn.ReLU(), *rest)
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    watch = diagnostics.watch(model, optimizer, every=1)
    for rows in torch.arange(96).split(12):
        loss = step(model, rows, torch.rand(len(rows)) < 0.5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        watch.step(loss)
    return "labels-unrelated" in {finding.rule for finding in watch.report().findings}


def flipped(tensor, chosen):
    return torch.where(chosen.reshape(-1, *[1] * (tensor.ndim - 1)), tensor.flip(-1), tensor)


def test_images_mirrored_without_their_boxes_are_named():
    assert named(lambda model, rows, chosen: F.l1_loss(model(flipped(IMAGES[rows], chosen)), BOXES[rows]), True)
    assert not named(lambda model, rows, chosen: F.l1_loss(model(IMAGES[rows]), BOXES[rows]), True)


@pytest.mark.parametrize("apart", [True, False])
def test_masks_mirrored_by_a_draw_of_their_own_are_named(apart):
    def step(model, rows, chosen):
        other = torch.rand(len(rows)) < 0.5 if apart else chosen
        given = model(flipped(IMAGES[rows], chosen))
        return F.binary_cross_entropy_with_logits(given, flipped(MASKS[rows], other))

    assert named(step) == apart


def test_a_second_loss_of_mirrored_copies_is_not_compared():
    everything = torch.tensor(True)

    def step(model, rows, chosen):
        loss = F.binary_cross_entropy_with_logits(model(IMAGES[rows]), MASKS[rows])
        return loss + F.binary_cross_entropy_with_logits(model(IMAGES[rows].flip(-1)), MASKS[rows].flip(-1))

    def at_once(model, rows, chosen):
        one, other = model(IMAGES[rows]), model(IMAGES[rows].flip(-1))
        loss = F.binary_cross_entropy_with_logits(other, flipped(MASKS[rows], everything))
        return loss + F.binary_cross_entropy_with_logits(one, MASKS[rows])

    assert not named(step)
    assert not named(at_once)


def test_predictions_may_be_flipped_back():
    def step(model, rows, chosen):
        answers = flipped(model(flipped(IMAGES[rows], chosen)), chosen)
        return F.binary_cross_entropy_with_logits(answers, MASKS[rows])

    assert not named(step)


def test_labels_may_be_passed_to_the_model():
    class OwnLoss(nn.Conv2d):
        def forward(self, image, labels):
            return F.cross_entropy(super().forward(image), labels)

    assert named(
        lambda model, rows, chosen: model(flipped(IMAGES[rows], chosen), MASKS[rows].long()),
        model=OwnLoss(1, 2, 3, padding=1),
    )

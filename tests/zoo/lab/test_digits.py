"""The digits are scikit-learn's, and the checkpoint reads those that it has not seen."""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits
from torch import nn

from bugs import lab


def test_they_are_what_scikit_learn_hands_out() -> None:
    images, labels = lab.digits()
    theirs = load_digits()
    assert torch.equal(images, torch.tensor(theirs.images / 16, dtype=torch.float32).unsqueeze(1))
    assert torch.equal(labels, torch.tensor(theirs.target))


def test_the_checkpoint_reads_later_digits() -> None:
    model = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Linear(16 * 4 * 4, 64), nn.ReLU(), nn.Linear(64, 10)),
    )
    model.load_state_dict(torch.load(lab.digit_checkpoint(), weights_only=True))
    images, labels = (part[900:] for part in lab.digits())
    assert (model(images).argmax(1) == labels).float().mean() > 0.85

"""Evaluation rows that their dataset changes at random, seen by a script's watcher."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, random_split

from diagnostics.run.observer import ScriptObserver


class Rows(Dataset):
    def __init__(self, change, rows=120):
        given = torch.Generator().manual_seed(0)
        self.x, self.y = torch.randn(rows, 1, 6, 6, generator=given), torch.arange(rows) % 3
        self.x += torch.rand(rows, 1, 1, 1, generator=given) * 4
        self.change = change

    def __len__(self):
        return len(self.y)

    def __getitem__(self, place):
        return self.change(self.x[place]), self.y[place]


def found(change, evaluation=None, validate=lambda x: x, rows=120):
    run = ScriptObserver()
    try:
        torch.manual_seed(0)
        train, held_out = random_split(Rows(change, rows), [rows * 3 // 4, rows // 4])
        if evaluation is not None:
            held_out = Rows(evaluation)
        model = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(4):
            model.train()
            for x, y in DataLoader(train, 30, shuffle=True):
                optimizer.zero_grad()
                nn.functional.cross_entropy(model(x), y).backward()
                optimizer.step()
            model.eval()
            with torch.no_grad():
                for x, _ in DataLoader(held_out, rows // 4):
                    model(validate(x))
    finally:
        run.close()
    assert not run.faults
    return {finding.rule: finding.severity for report in run.watched() for finding in report.findings}


def flip(x):
    return x.flip(-1) if torch.rand(()) < 0.5 else x


@pytest.mark.parametrize("change", [flip, lambda x: x * (0.7 + 0.6 * torch.rand(()))], ids=["flip", "contrast"])
def test_a_split_of_one_augmented_dataset_is_found(change):
    assert found(change)["augmented-evaluation"] == "warning"


def blurred(x):
    """Turn, shift and dim a picture, and add noise as large as itself."""
    turned = torch.rot90(x, int(torch.randint(4, ())), (1, 2)).roll(int(torch.randint(6, ())), 2)
    return turned * (0.3 + torch.rand(())) + torch.randn_like(x)


def test_strongly_augmented_rows_are_found():
    assert found(blurred, rows=400)["augmented-evaluation"] == "warning"


def test_a_dataset_of_its_own_gets_a_note():
    assert found(flip, flip)["augmented-evaluation"] == "note"


@pytest.mark.parametrize(
    ("change", "evaluation"),
    [(lambda x: x, None), (flip, lambda x: x), (torch.randn_like, None), (lambda x: x.div_(1.1), None)],
    ids=["no transform", "a plain one", "made up again", "changed in place"],
)
def test_others_are_not(change, evaluation):
    assert "augmented-evaluation" not in found(change, evaluation)


def test_many_rows_that_are_made_up_again_are_not():
    assert "augmented-evaluation" not in found(torch.randn_like, rows=400)


def test_noise_that_the_loop_adds_is_its_own():
    assert "augmented-evaluation" not in found(lambda x: x, validate=lambda x: x + torch.randn_like(x))

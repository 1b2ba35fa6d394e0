"""Dropout that is on in evaluation mode, found by asking a copy twice."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.collectors.pytorch.dependence.subject import Subject


class Model(nn.Module):
    def __init__(self, drop, corrupt):
        super().__init__()
        self.linear, self.drop, self.corrupt = nn.Linear(6, 6), drop, corrupt

    def forward(self, x):
        return self.drop(self, self.linear(self.corrupt(x)))


def found(drop, corrupt=lambda x: x):
    torch.manual_seed(0)
    subject = Subject(
        model=Model(drop, corrupt), call=lambda model, given: model(given["x"]), inputs={"x": torch.randn(32, 6)}
    )
    return measure(subject)


def attention(self, x, **options):
    return F.scaled_dot_product_attention(x[:, None], x[:, None], x[:, None], **options)[:, 0]


@pytest.mark.parametrize(
    ("drop", "told"),
    [
        (lambda self, x: F.dropout(x, 0.25), "nothing"),
        (lambda self, x: F.dropout(x, p=0.25, inplace=False), "nothing"),
        (lambda self, x: F.dropout2d(x[:, :, None, None], 0.25)[:, :, 0, 0], "nothing"),
        (lambda self, x: attention(self, x, dropout_p=0.25), "nothing"),
        (lambda self, x: F.dropout(x, 0.25, True), "always"),
        (lambda self, x: torch.dropout(x, 0.25, train=True), "always"),
        (lambda self, x: F.dropout(x, 0.25, not self.training), "something"),
        (lambda self, x: F.dropout(x, **{"p": 0.25}), "unknown"),
    ],
)
def test_dropout_that_stays_on_is_found(drop, told):
    facts = found(drop)
    assert [(one.rate, one.told) for one in facts.dropout] == [(0.25, told)]
    assert facts.dropout[0].where.file == "test_dropout.py"
    assert facts.noise > 0


@pytest.mark.parametrize(
    "drop",
    [
        lambda self, x: F.dropout(x, 0.25, self.training),
        lambda self, x: F.dropout(x, 0.0),
        lambda self, x: attention(self, x, dropout_p=0.25 if self.training else 0.0),
        lambda self, x: x + torch.randn_like(x),
        lambda self, x: nn.Dropout(0.25).eval()(x),
        "inputs",
    ],
)
def test_other_noise_corrupted_inputs_and_dropout_that_is_off_are_not(drop):
    facts = found(lambda self, x: x, lambda x: F.dropout(x, 0.3)) if drop == "inputs" else found(drop)
    assert (facts.dropout, facts.noise) == ((), 0.0)

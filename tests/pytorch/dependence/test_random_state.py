"""Recurrent layers whose first state is drawn at random, found by asking a copy twice."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.collectors.pytorch.dependence.subject import Subject


class Model(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.rnn, self.head, self.state = nn.GRU(3, 8, batch_first=True), nn.Linear(8, 2), state
        self.first = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        return self.head(self.rnn(x, self.state(self, x))[0][:, -1])


class Cells(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTMCell(3, 8), nn.Linear(8, 2)

    def forward(self, x):
        state = torch.rand(len(x), 8), torch.zeros(len(x), 8)
        for step in x.unbind(1):
            state = self.cell(step, state)
        return self.head(state[0])


def found(model):
    torch.manual_seed(0)
    inputs = {"x": torch.randn(16, 5, 3)}
    target = torch.zeros(16, dtype=torch.long)
    return measure(Subject(model, lambda model, given: model(given["x"]), inputs, target=target)).random_state


@pytest.mark.parametrize(
    ("state", "function"),
    [
        (lambda self, x: torch.randn(1, len(x), 8), "randn"),
        (lambda self, x: torch.rand(len(x), 8).unsqueeze(0), "rand"),
        (lambda self, x: nn.init.xavier_normal_(torch.empty(1, len(x), 8)), "normal_"),
        (lambda self, x: torch.randn_like(self.first.expand(1, len(x), 8)), "randn_like"),
    ],
)
def test_a_state_that_is_drawn_in_each_pass_is_found(state, function):
    facts = found(Model(state))
    assert (facts.layer, facts.function, facts.has_target) == ("rnn (GRU)", function, True)
    assert facts.change > 0


def test_so_is_one_of_cells():
    assert found(Cells()).function == "rand"


@pytest.mark.parametrize(
    "state",
    [
        lambda self, x: None,
        lambda self, x: torch.zeros(1, len(x), 8),
        lambda self, x: self.first.expand(1, len(x), 8).contiguous(),
        lambda self, x: torch.randn(1, len(x), 8) if self.training else None,
        lambda self, x: self.first * torch.randn(1, len(x), 8),
    ],
    ids=["none", "zeros", "learned", "in training only", "computed from a draw"],
)
def test_other_states_are_not(state):
    assert found(Model(state)) is None

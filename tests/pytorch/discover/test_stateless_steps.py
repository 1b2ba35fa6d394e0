"""Recurrent layers that generate position by position, with and without a state, as a finder of loops sees it."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.facts.calls import ObjectLedger
from tests.pytorch.discover.watching import Watching

NUMBERS, TOKENS = 3, 12


class Net(nn.Module):
    """Predicts the next token, or the next numbers."""

    def __init__(self, tokens=True):
        super().__init__()
        torch.manual_seed(0)
        self.embed = nn.Embedding(TOKENS, 8) if tokens else nn.Linear(NUMBERS, 8)
        self.rnn = nn.LSTM(8, 16, batch_first=True)
        self.out = nn.Linear(16, TOKENS if tokens else NUMBERS)
        with torch.no_grad():
            self.out.weight.mul_(30)  # so that one output differs from the other

    def forward(self, given, state=None):
        states, state = self.rnn(self.embed(given), hx=state)
        return self.out(states), state


@pytest.fixture
def found():
    """Return a function that closes the finder, and gives what it found."""
    facts, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: Watching(), faults.append, compare=lambda watching, more: facts.extend(more)
    )

    def close():
        finder.close()
        assert faults == []
        return [fact for fact in facts if isinstance(fact, ObjectLedger) and fact.lone_positions]

    yield close
    finder.close()


def train(model, lengths=(6,), tokens=True):
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
    for step in range(12):
        length = lengths[step % len(lengths)]
        given = torch.randint(0, TOKENS, (4, length)) if tokens else torch.randn(4, length, NUMBERS)
        optimizer.zero_grad()
        model(given)[0].square().mean().backward()
        optimizer.step()


def sampled(scores):
    return torch.multinomial(scores[:, -1].softmax(-1), 1)


@torch.no_grad()
def generate(model, given, follow=sampled, calls=40, keeps=False):
    model.eval()
    scores, state = model(given)
    for _ in range(calls):
        scores, state = model(follow(scores), state if keeps else None)


def test_finds_tokens_sampled_from_an_output_without_a_state(found):
    model = Net()
    train(model)
    generate(model, torch.randint(0, TOKENS, (2, 5)))
    (ledger,) = found()
    assert (ledger.lone_positions, ledger.recurrent, ledger.trained_length) == (40, "rnn (LSTM)", 6)


def test_finds_numbers_that_are_fed_back(found):
    model = Net(tokens=False)
    train(model, tokens=False)
    generate(model, torch.randn(1, 5, NUMBERS), lambda output: output[:, -1:])
    assert [ledger.lone_positions for ledger in found()] == [40]


@pytest.mark.parametrize(
    ("lengths", "options"),
    [
        ((6,), {"keeps": True}),
        ((6, 1), {}),
        ((6,), {"calls": 12}),
        ((6,), {"follow": lambda scores: torch.randint(0, TOKENS, (len(scores), 1))}),
        ((6,), {"follow": lambda scores: torch.randint(0, TOKENS, (len(scores), 3))}),
    ],
    ids=["with the state", "trained on single positions", "few", "other tokens", "longer inputs"],
)
def test_is_silent_on_a_loop(found, lengths, options):
    model = Net()
    train(model, lengths)
    generate(model, torch.randint(0, TOKENS, (2, 5)), **options)
    assert found() == []


def test_is_silent_where_the_whole_text_is_given(found):
    model = Net().train()
    train(model)
    model.eval()
    text = torch.zeros(1, 1, dtype=torch.long)
    with torch.no_grad():
        for _ in range(30):
            text = torch.cat([text, sampled(model(text)[0])], dim=1)
    assert found() == []

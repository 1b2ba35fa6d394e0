"""Sequences of which a recurrent net uses the first step alone, as people take it by mistake."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from tests.pytorch.dependence.test_measure import Lambda, measure, subject

TARGET = torch.zeros(32, dtype=torch.long)
SERIES = torch.randn(32, 9, 6, generator=torch.Generator().manual_seed(0))
WORDS = torch.randint(0, 20, (32, 9), generator=torch.Generator().manual_seed(0))


def first_step_of(function, rnn, inputs=SERIES, *layers):
    torch.manual_seed(0)
    width = rnn.hidden_size * (2 if rnn.bidirectional else 1)
    model = Lambda(function, rnn, nn.Linear(width, 3), *layers)
    return measure(subject(model, inputs, target=TARGET)).first_step_of


def words(x, rnn, head, embedding):
    return head(rnn(embedding(x))[0].select(1, 0))


@pytest.mark.parametrize(
    ("function", "rnn", "inputs"),
    [
        (lambda x, rnn, head: head(rnn(x)[0][:, 0]), nn.LSTM(6, 8, batch_first=True), SERIES),
        (lambda x, rnn, head: head(rnn(x)[0][0]), nn.GRU(6, 8, num_layers=2), SERIES.transpose(0, 1)),
        (lambda x, rnn, head: head(rnn(x)[0].transpose(0, 1)[0]), nn.RNN(6, 8, batch_first=True), SERIES),
    ],
    ids=["batch first", "time first", "transposed"],
)
def test_the_first_step_alone_is_seen(function, rnn, inputs):
    assert first_step_of(function, rnn, inputs) == 9


def test_the_first_word_alone_is_seen():
    assert first_step_of(words, nn.GRU(4, 8, batch_first=True), WORDS, nn.Embedding(20, 4)) == 9


@pytest.mark.parametrize(
    ("function", "rnn"),
    [
        (lambda x, rnn, head: head(rnn(x)[0][:, -1]), nn.LSTM(6, 8, batch_first=True)),
        (lambda x, rnn, head: head(rnn(x)[1][-1]), nn.GRU(6, 8, batch_first=True)),
        (lambda x, rnn, head: head(rnn(x)[0].mean(1)), nn.RNN(6, 8, batch_first=True)),
        (lambda x, rnn, head: head(rnn(x.flip(1))[0][:, -1]), nn.GRU(6, 8, batch_first=True)),
        (lambda x, rnn, head: head(rnn(x)[0][:, 0]), nn.GRU(6, 8, batch_first=True, bidirectional=True)),
        (lambda x, rnn, head: head(rnn(x)[0]), nn.GRU(6, 8, batch_first=True)),
    ],
    ids=["last", "hidden state", "mean", "read backwards", "both directions", "an answer for each step"],
)
def test_nothing_where_later_steps_are_used(function, rnn):
    assert first_step_of(function, rnn) is None


class Cells(nn.Module):
    def __init__(self, remembers):
        super().__init__()
        self.cell, self.head, self.remembers = nn.GRUCell(6, 8), nn.Linear(8, 3), remembers

    def forward(self, x):
        h = None
        for t in range(x.size(1)):
            h = self.cell(x[:, t], h if self.remembers else None)
        return self.head(h)


def called_step_by_step(x, rnn, head):
    for t in range(x.size(1)):
        out, _ = rnn(x[:, t : t + 1])
    return head(out[:, -1])


def test_a_state_that_is_made_anew_leaves_the_last_step_alone():
    torch.manual_seed(0)
    facts = measure(subject(Cells(False), SERIES, target=TARGET))
    assert (facts.first_step_of, facts.last_step_of) == (None, 9)
    stepwise = Lambda(called_step_by_step, nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3))
    assert measure(subject(stepwise, SERIES, target=TARGET)).last_step_of == 9


def test_a_state_that_is_handed_on_is_none():
    torch.manual_seed(0)
    facts = measure(subject(Cells(True), SERIES, target=TARGET))
    assert (facts.first_step_of, facts.last_step_of) == (None, None)
    whole = Lambda(lambda x, rnn, head: head(rnn(x)[0][:, -1]), nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3))
    assert measure(subject(whole, SERIES, target=TARGET)).last_step_of is None


class Attention(nn.Module):
    """A transformer over words, which may read forward only, and what a head makes of its output."""

    def __init__(self, pool, causal=True):
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.place = nn.Embedding(20, 8), nn.Parameter(torch.randn(9, 8))
        block = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
        self.blocks, self.head = nn.TransformerEncoder(block, 2, enable_nested_tensor=False), nn.Linear(8, 3)
        self.pool, self.causal = pool, causal

    def forward(self, ids, mask=None):
        ahead = torch.triu(torch.ones(9, 9, dtype=torch.bool), 1) if self.causal else None
        padding = None if mask is None else mask == 0
        hidden = self.blocks(self.embedding(ids) + self.place, ahead, padding)
        return self.head(self.pool(hidden, mask))


def of_first(hidden, mask):
    return hidden[:, 0]


def of_last(hidden, mask):
    return hidden[:, -1] if mask is None else hidden[torch.arange(len(hidden)), mask.sum(1) - 1]


LENGTHS = torch.arange(32) % 6 + 4
MASK = (torch.arange(9) < LENGTHS[:, None]).long()
WITH_CLASS = torch.cat([torch.ones(32, 1, dtype=torch.long), WORDS[:, 1:]], 1)


@pytest.mark.parametrize(
    ("words", "mask"),
    [(WORDS, None), (WORDS * MASK, MASK), (WITH_CLASS, None)],
    ids=["plain", "padded", "a class token in front"],
)
def test_causal_attention_has_seen_the_first_word_alone(words, mask):
    inputs = (words,) if mask is None else (words, mask)
    assert measure(subject(Attention(of_first), *inputs, target=TARGET)).first_step_of == 9
    assert measure(subject(Attention(of_last), *inputs, target=TARGET)).first_step_of is None
    assert measure(subject(Attention(of_first, causal=False), *inputs, target=TARGET)).first_step_of is None


def test_a_sequence_whose_place_is_chosen_by_another_input():
    def chosen(hidden, place):
        return hidden[torch.arange(len(hidden)), place]

    class Chosen(Attention):
        def forward(self, ids, place):
            hidden = self.blocks(
                self.embedding(ids) + self.place, torch.triu(torch.ones(9, 9, dtype=torch.bool), 1)
            )
            return self.head(chosen(hidden, place))

    places = torch.zeros(32, dtype=torch.long)
    assert measure(subject(Chosen(None), WORDS, places, target=TARGET)).first_step_of is None

"""Answers that depend on where in the batch their example stands, and answers that are to be their inputs."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from tests.pytorch.dependence.test_measure import Lambda, measure, of_rows, subject

INPUTS = 3 + torch.randn(32, 20, generator=torch.Generator().manual_seed(0))


def of_numbers(model, target):
    return measure(subject(model, INPUTS, target=target)).sameness


def test_a_row_that_is_added_by_its_number_is_seen():
    table = torch.randn(64, 8, generator=torch.Generator().manual_seed(0))
    model = Lambda(
        lambda x, lift, head: head(torch.relu(lift(x) + table[: len(x)])), nn.Linear(4, 8), nn.Linear(8, 3)
    )
    facts = of_rows(model, 4)
    assert facts.change == 0
    assert facts.moved > 0.1 * facts.scale


def test_examples_by_themselves_have_no_place():
    assert of_rows(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3)), 4).moved == 0


def test_noise_has_no_place():
    noisy = Lambda(lambda x, head: head(x) + torch.randn(len(x), 3), nn.Linear(4, 3))
    assert of_rows(noisy, 4).moved is None


def test_who_comes_first_is_no_matter_of_places():
    def forward(x, gate, one, other):  # a capacity of half the batch, each
        chosen = gate(x).argmax(1)
        answers = torch.zeros(len(x), 3)
        for number, expert in enumerate((one, other)):
            rows = (chosen == number).nonzero()[:, 0][: max(1, len(x) // 3)]
            answers = answers.index_add(0, rows, expert(x[rows]))
        return answers

    assert of_rows(Lambda(forward, nn.Linear(4, 2), nn.Linear(4, 3), nn.Linear(4, 3)), 4).moved is None


def test_packed_sequences_that_cannot_be_reversed_are_still_compared():
    def forward(x, lengths, rnn, head):
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=True)
        return head(rnn(packed)[1][0][-1])

    model = Lambda(forward, nn.LSTM(6, 8, batch_first=True), nn.Linear(8, 3))
    lengths, target = (9 - torch.arange(32)).clamp(3), torch.zeros(32, dtype=torch.long)
    facts = measure(subject(model, torch.randn(32, 9, 6), lengths, target=target, batch_first=True))
    assert (facts.compared, facts.moved) == (7, None)
    assert facts.change < 1e-6


def test_answers_that_are_the_mean_input_hardly_differ():
    constant = Lambda(lambda x, head: head(0 * x) + INPUTS.mean(0), nn.Linear(20, 20, bias=False))
    seen = of_numbers(constant, INPUTS)
    assert seen.answers < 1e-3
    assert seen.apart < 0.1
    assert seen.level > 1
    assert of_numbers(Lambda(lambda x, head: x + 0 * head(x), nn.Linear(20, 20)), INPUTS).answers > 0.9


def test_answers_to_something_else_are_no_copies():
    assert of_numbers(nn.Linear(20, 20), INPUTS.flip(1)) is None
    assert of_numbers(nn.Linear(20, 20), torch.zeros(32, dtype=torch.long)) is None

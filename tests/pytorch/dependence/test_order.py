"""Whether models with attention know the order of their tokens."""

from __future__ import annotations

import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.measure import measure
from tests.pytorch.dependence.test_measure import Lambda, subject

LENGTH = 12
SAME = 1e-5


def tokens(repeated=True):
    generator = torch.Generator().manual_seed(0)
    if repeated:
        return torch.randint(0, 20, (16, LENGTH), generator=generator)
    return torch.stack([torch.randperm(20, generator=generator)[:LENGTH] for _ in range(16)])


def measured(function, *layers, given=None):
    torch.manual_seed(0)
    encoder = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True)
    model = Lambda(function, nn.Embedding(20, 16), encoder, nn.Linear(16, 3), *layers)
    return measure(subject(model, tokens() if given is None else given))


def test_attention_without_positions_sees_a_set():
    order = measured(lambda x, embed, encoder, head: head(encoder(embed(x)).mean(1))).order
    assert (order.length, order.by_position) == (LENGTH, False)
    assert order.change < SAME < order.spread


def test_answers_of_each_token_move_along():
    order = measured(lambda x, embed, encoder, head: head(encoder(embed(x)))).order
    assert order.by_position
    assert order.change < SAME < order.spread


def test_positions_or_a_causal_mask_tell_the_order():
    places = nn.Embedding(LENGTH, 16)
    order = measured(lambda x, embed, encoder, head, at: head(encoder(embed(x) + at.weight).mean(1)), places).order
    assert order.change > SAME
    mask = nn.Transformer.generate_square_subsequent_mask(LENGTH)
    assert measured(lambda x, embed, encoder, head: head(encoder(embed(x), mask))).order.change > SAME


def test_sets_and_models_without_attention_are_not_judged():
    pooled = measured(lambda x, embed, encoder, head: head(embed(x).mean(1)))
    assert pooled.why_not["order"] == "no attention between the tokens of a row was observed"
    basket = measured(lambda x, embed, encoder, head: head(encoder(embed(x)).mean(1)), given=tokens(False))
    assert basket.why_not["order"] == "each row is a set: no token occurs in it twice"

"""What padding does to the answers of small models."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

from diagnostics.collectors.pytorch.dependence.measure import measure
from diagnostics.rules.model.padding_attended import LEFT
from tests.pytorch.dependence.test_measure import Lambda, subject

WIDTH = 40


def texts():
    torch.manual_seed(0)
    lengths = torch.tensor([4, 5, 6, 8, 12, 40, 40, 38])
    tokens = torch.randint(1, 50, (8, WIDTH))
    tokens[torch.arange(WIDTH) >= lengths[:, None]] = 0
    return tokens


def measured(function, *layers, tokens=None):
    model = Lambda(function, nn.Embedding(50, 8, padding_idx=0), *layers)
    return measure(subject(model, texts() if tokens is None else tokens))


def rnn():
    return nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 3)


def test_the_last_output_of_a_padded_row_has_forgotten_its_words():
    padding = measured(lambda x, embed, lstm, head: head(lstm(embed(x))[0][:, -1]), *rnn()).padding
    assert (padding.input, padding.rows, padding.longest, padding.fails) == ("0", 6, 36, 0)
    assert padding.with_padding < LEFT * padding.without


def test_packed_rows_have_not():
    def last(x, embed, lstm, head):
        lengths = (x != 0).sum(1)
        _, (hidden, _) = lstm(pack_padded_sequence(embed(x), lengths, batch_first=True, enforce_sorted=False))
        return head(hidden[-1])

    padding = measured(last, *rnn()).padding
    # float32 rounds to 6e-8: rows that share a call with others are summed in another order.
    assert padding.with_padding == pytest.approx(padding.without, rel=1e-6)
    assert padding.without > 0
    assert (padding.removed.changed, padding.removed.change) == (0, pytest.approx(0, abs=1e-6))


def test_a_mean_over_all_positions_leaves_the_words_their_share():
    padding = measured(lambda x, embed, head: head(embed(x).mean(1)), nn.Linear(8, 3)).padding
    assert padding.with_padding > LEFT * padding.without > 0


def attention():
    return nn.MultiheadAttention(8, 2, batch_first=True), nn.Linear(8, 3)


def test_a_mask_the_wrong_way_round_hides_the_words():
    def answer(x, embed, attend, head, right):
        hidden = embed(x)
        return head(attend(hidden, hidden, hidden, key_padding_mask=(x == 0) == right)[0][:, 0])

    short = texts()[:5, :20]
    wrong = measured(lambda *given: answer(*given, False), *attention(), tokens=short).padding
    assert (wrong.rows, wrong.hides_words) == (5, True)
    right = measured(lambda *given: answer(*given, True), *attention(), tokens=short).padding
    assert (right.fails, right.hides_words) == (0, False)
    assert right.with_padding > LEFT * right.without > 0


def test_a_mask_of_numbers_in_an_encoder_with_a_weight_for_each_position():
    def answer(x, embed, encoder, head, places, right):
        mask = torch.zeros(x.shape).masked_fill((x == 0) == right, -torch.inf)
        return head(encoder(embed(x) + places.weight, src_key_padding_mask=mask)[:, 0])

    layers = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), nn.Linear(8, 3), nn.Embedding(20, 8)
    short = texts()[:5, :20]
    assert measured(lambda *given: answer(*given, False), *layers, tokens=short).padding.hides_words
    right = measured(lambda *given: answer(*given, True), *layers, tokens=short).padding
    assert right is None or not right.hides_words


def test_a_mask_by_hand_leaves_nothing_without_padding_where_each_position_has_a_weight():
    places = nn.Embedding(20, 8)

    def answer(x, embed, head, places):
        hidden = embed(x) + places.weight
        scores = (hidden @ hidden.transpose(1, 2)).masked_fill((x != 0)[:, None], -torch.inf)
        return head((scores.softmax(-1) @ hidden)[:, 0])

    padding = measured(answer, nn.Linear(8, 3), places, tokens=texts()[:5, :20]).padding
    assert (padding.rows, padding.fails) == (5, 5)


def test_not_known_where_nothing_is_padded_or_each_position_has_its_answer():
    lone = measured(lambda x, embed, head: head(embed(x).mean(1)), nn.Linear(8, 3), tokens=texts().clamp(1))
    assert lone.why_not["padding"] == "needs exactly one input with padding"
    tagged = measured(lambda x, embed, head: head(embed(x)), nn.Linear(8, 3))
    assert tagged.why_not["padding"] == "the model does not return a single prediction for each row"


class Reader(nn.Module):
    """Mean of embeddings, of the positions that a mask marks."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 8)

    def forward(self, ids, attention_mask=None):
        mask = torch.ones_like(ids) if attention_mask is None else attention_mask
        return (self.embed(ids) * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)


def read(answer, **options):
    torch.manual_seed(0)
    model = Lambda(answer, Reader(), nn.Linear(8, 3))
    return measure(subject(model, texts(), target=torch.zeros(8, dtype=torch.long), **options)).padding


def test_names_the_module_that_gets_no_mask():
    padding = read(lambda x, reader, head: head(reader(x)))
    assert padding.reader == "layers.0 (Reader)"
    assert padding.removed.change > 0


@pytest.mark.parametrize("by_name", [True, False])
def test_names_no_module_that_gets_its_mask(by_name):
    def answer(x, reader, head):
        return head(reader(x, attention_mask=x != 0) if by_name else reader(x, x != 0))

    padding = read(answer)
    assert padding.reader is None
    assert padding.removed.changed == 0


def test_padding_is_where_an_unused_mask_of_the_batch_says():
    mask = (texts() != 0).numpy()
    padding = read(lambda x, reader, head: head(reader(x)), unused_mask=("attention_mask", mask))
    assert (padding.mask, padding.some_full, padding.blank) == ("attention_mask", True, 0)
    assert read(lambda x, reader, head: head(reader(x)), unused_mask=("1", mask[:, ::-1])).mask is None

"""What padding does to the mean of the vectors that small models return for each position."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.dependence.padding import compare_pooling
from diagnostics.collectors.shared.dependence.subject import Unclear
from tests.pytorch.dependence.test_measure import Lambda, subject

WIDTH = 30


def texts():
    torch.manual_seed(0)
    lengths = torch.tensor([4, 5, 6, 8, 12, 30, 30, 28])
    mask = (torch.arange(WIDTH) < lengths[:, None]).long()
    return torch.randint(1, 50, (8, WIDTH)) * mask, mask


def pooled(function, *layers, given=None):
    model = Lambda(function, nn.Embedding(50, 8), *layers)
    return compare_pooling(subject(model, *(texts() if given is None else given)), evaluated=False)


def encoder():
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)


def test_padding_moves_the_mean_of_an_encoder_that_masks_it():
    found = pooled(lambda x, m, embed, encode: encode(embed(x), src_key_padding_mask=m == 0), encoder())
    assert (found.input, found.rows, found.longest, found.width, found.evaluated) == ("0", 6, 26, 8, False)
    assert found.changed >= 4
    assert found.change > found.spread / 2


def test_silent_on_zeros_at_padding():
    with pytest.raises(Unclear, match="zeros"):
        pooled(lambda x, m, embed: embed(x) * m[..., None])


def test_silent_on_one_prediction_for_each_row():
    with pytest.raises(Unclear, match="vector for each position"):
        pooled(lambda x, m, embed: embed(x).mean(1))


def test_silent_without_a_mask_or_without_a_row_that_is_full():
    ids, mask = texts()
    with pytest.raises(Unclear, match="mask"):
        pooled(lambda x, embed: embed(x), given=(ids,))
    longer = nn.functional.pad(ids, (0, 5)), nn.functional.pad(mask, (0, 5))
    with pytest.raises(Unclear, match="longest row"):
        pooled(lambda x, m, embed: embed(x), given=longer)

"""The id that the embedding of a model keeps for padding."""

import pytest
from torch import nn

from diagnostics.collectors.pytorch.model import describe_model


@pytest.mark.parametrize(
    ("embeddings", "masked"),
    [
        ([nn.Embedding(9, 4, padding_idx=0)], (0, 9)),
        ([nn.Embedding(9, 4, padding_idx=-1), nn.Embedding(5, 4)], (8, 9)),
        ([nn.Embedding(9, 4)], None),
        ([nn.Embedding(9, 4, padding_idx=0), nn.Embedding(5, 4, padding_idx=0)], None),
    ],
)
def test_is_that_of_the_only_embedding_with_one(embeddings, masked):
    model = nn.Sequential(*embeddings)
    assert describe_model(model, training=None, computes_loss=False).masked == masked

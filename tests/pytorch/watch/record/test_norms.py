"""The layers whose gradients and updates are measured."""

import pytest
from torch import nn

from diagnostics.collectors.pytorch.watch.record.norms import Layers


class Reader(nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.embedding, self.lstm, self.fc = nn.Embedding(9, 4), nn.LSTM(4, 3, **options), nn.Linear(3, 2)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({}, ["lstm"]),
        ({"num_layers": 2}, ["lstm layer 1", "lstm layer 2"]),
        ({"bidirectional": True, "proj_size": 2}, ["lstm layer 1", "lstm layer 1, backward"]),
    ],
)
def test_layers_and_directions_of_a_recurrent_module_count_one_by_one(options, parts):
    assert list(Layers(Reader(**options)).names) == ["embedding", *parts, "fc"]


def test_a_recurrent_module_by_itself_has_the_name_of_its_class():
    assert Layers(nn.GRU(4, 3)).names == ("GRU",)
    assert Layers(nn.GRU(4, 3, num_layers=2)).names == ("GRU layer 1", "GRU layer 2")

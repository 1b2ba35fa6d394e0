"""The function that computed a prediction, read from its graph."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.activations import last_function

INPUTS = torch.randn(4, 3)
LAYER, BATCHED = nn.Linear(3, 2), torch.randn(5, 4, 3)


@pytest.mark.parametrize(
    ("prediction", "function"),
    [
        (lambda: LAYER(INPUTS), "linear"),
        (lambda: nn.Linear(3, 2, bias=False)(INPUTS).flatten(), "linear"),
        (lambda: LAYER(BATCHED).transpose(1, 2), "linear"),
        (lambda: LAYER(INPUTS).sigmoid()[:, 0], "sigmoid"),
        (lambda: nn.Softmax(dim=1)(LAYER(INPUTS)), "softmax"),
        (lambda: LAYER(INPUTS).log_softmax(1).double(), "logsoftmax"),
        (lambda: LAYER(INPUTS).relu().squeeze(), "relu"),
        (lambda: nn.functional.softplus(LAYER(INPUTS)), "softplus"),
        (lambda: LAYER(INPUTS).tanh().view(-1), "tanh"),
        (lambda: 2 * LAYER(INPUTS).sigmoid(), None),
        (lambda: LAYER(INPUTS).clamp(0, 1), None),
        (lambda: INPUTS, None),
    ],
)
def test_is_found_behind_changes_of_shape_and_dtype(prediction, function):
    assert last_function(prediction()) == function

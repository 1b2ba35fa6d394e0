"""The function that computed a prediction, read from its graph."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.activations import function_before, is_multiplied, last_function

INPUTS = torch.randn(4, 3)
LAYER, BATCHED = nn.Linear(3, 2), torch.randn(5, 4, 3)
unit = nn.functional.normalize


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
        (lambda: nn.functional.cosine_similarity(LAYER(INPUTS), LAYER(INPUTS + 1)), "cosine_similarity"),
        (lambda: (unit(LAYER(INPUTS)) * unit(LAYER(INPUTS + 1))).sum(-1).view(-1), "cosine_similarity"),
        (lambda: (unit(LAYER(INPUTS)) * LAYER(INPUTS + 1)).sum(-1), None),
        (lambda: (LAYER(INPUTS) / 2 * unit(LAYER(INPUTS))).sum(-1), None),
        (lambda: 5 * nn.functional.cosine_similarity(LAYER(INPUTS), LAYER(INPUTS + 1)), None),
        (lambda: INPUTS, None),
    ],
)
def test_is_found_behind_changes_of_shape_and_dtype(prediction, function):
    assert last_function(prediction()) == function


@pytest.mark.parametrize(
    ("prediction", "function"),
    [
        (lambda: LAYER(INPUTS).softmax(1).view(2, 4).log_softmax(1), "softmax"),
        (lambda: LAYER(INPUTS).sigmoid().sigmoid()[:, 0], "sigmoid"),
        (lambda: LAYER(INPUTS).softmax(1), "linear"),
        (lambda: LAYER(LAYER(INPUTS).softmax(1) @ torch.ones(2, 3)).softmax(1), "linear"),
        (lambda: (LAYER(INPUTS).softmax(1) / 0.1).softmax(1), None),
        (lambda: INPUTS, None),
    ],
)
def test_that_it_was_applied_to_is_found_too(prediction, function):
    assert function_before(prediction()) == function


UNITS = nn.functional.normalize(INPUTS)
SCALE = nn.Parameter(torch.tensor(2.66))


def cosines():
    return nn.functional.linear(UNITS, nn.functional.normalize(LAYER.weight))


@pytest.mark.parametrize(
    ("prediction", "multiplied"),
    [
        (
            lambda: 16.0 * torch.where(torch.eye(4, 2).bool(), cosines().clamp(-0.9, 0.9).acos().cos(), cosines()),
            True,
        ),
        (lambda: (cosines() - 0.35 * torch.eye(4, 2)) * 30, True),
        (lambda: cosines() / 0.07, True),
        (lambda: SCALE.exp() * cosines(), True),
        (lambda: LAYER(INPUTS), False),
        (lambda: 0.1 * LAYER(INPUTS), False),
        (lambda: LAYER(INPUTS) / 8, False),
        (lambda: LAYER(INPUTS) * torch.full((4, 2), 9.0), False),
        (lambda: LAYER(INPUTS) * LAYER(INPUTS), False),
        (lambda: (16 * cosines()).relu(), False),
    ],
)
def test_a_factor_of_all_scores_is_seen(prediction, multiplied):
    assert is_multiplied(prediction()) is multiplied

"""Passes without gradients, compared with the passes of the same steps with gradients."""

import pytest
import torch
from torch import nn

from tests.pytorch.watched import batch, run


@pytest.mark.parametrize(("other", "same"), [(0, True), (100, False)], ids=["the same rows", "other rows"])
def test_inputs_of_passes_without_gradients_are_compared(other, same):
    def change(step, model, _optimizer):
        with torch.no_grad():
            model(batch(step + other, 16)[0])

    no_grad = run(nn.Linear(8, 3), 20, change=change).history().no_grad
    assert no_grad.compared >= 8
    assert no_grad.same == (no_grad.compared if same else 0)


def test_nothing_is_compared_without_an_evaluation():
    no_grad = run(nn.Linear(8, 3), 20).history().no_grad
    assert no_grad.compared == 0

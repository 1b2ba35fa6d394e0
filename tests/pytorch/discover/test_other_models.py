"""Models that are trained with an optimizer of another one, as a finder of loops finds them."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from tests.pytorch.discover.watching import Watching

INPUTS = torch.randn(16, 4, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def begun():
    """Give the model and the optimizers of each loop that is found."""
    begun, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: begun.append((model, optimizers)) or Watching(),
        faults.append,
        compare=lambda watching, facts: None,
    )
    yield begun
    finder.close()
    assert faults == []


def train(model, optimizer, steps=30):
    for _ in range(steps):
        optimizer.zero_grad()
        model(INPUTS).square().mean().backward()
        optimizer.step()


def two_models():
    return nn.Linear(4, 1), nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))


def test_the_optimizer_of_a_first_model_that_was_never_trained(begun):
    first, second = two_models()
    optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
    train(second, optimizer)
    assert begun == [(second, [optimizer])]


def test_the_optimizer_of_a_first_model_that_was_trained_before(begun):
    first, second = two_models()
    optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
    train(first, optimizer)
    train(second, optimizer)
    assert begun == [(first, [optimizer]), (second, [optimizer])]


def test_a_model_updated_by_hand_beside_an_optimizer_with_gradients(begun):
    first, second = two_models()
    optimizer = torch.optim.SGD(first.parameters(), lr=0.1)
    for _ in range(30):
        second.zero_grad()
        optimizer.zero_grad()
        (first(INPUTS) - second(INPUTS)).square().mean().backward()
        optimizer.step()
        with torch.no_grad():
            for parameter in second.parameters():
                parameter -= 0.1 * parameter.grad
    assert [model for model, _ in begun] == [first]


@pytest.mark.parametrize("kind", [torch.optim.LBFGS, torch.optim.Adam])
def test_an_image_fitted_through_a_network_that_is_not_frozen(begun, kind):
    _, network = two_models()
    image = INPUTS.clone().requires_grad_()
    optimizer = kind([image], lr=0.1)

    def closure():
        loss = network(image).square().mean()
        loss.backward()
        return loss

    for _ in range(30):
        optimizer.zero_grad()
        if kind is torch.optim.Adam:
            closure()
        optimizer.step(closure if kind is torch.optim.LBFGS else None)
    assert begun == []

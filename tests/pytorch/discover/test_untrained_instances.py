"""An evaluation of another instance than the trained one, as a finder of loops sees it."""

import copy

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.facts.calls import ObjectLedger
from diagnostics.rules.optimizer.recreated_model import MIN_ROWS
from tests.pytorch.discover.watching import Watching

INPUTS = torch.randn(32, 6, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.hidden, self.out = nn.Linear(6, width), nn.Linear(width, 2)

    def forward(self, inputs):
        return self.out(torch.relu(self.hidden(inputs)))


@pytest.fixture
def found():
    """Return a function that closes the finder, and gives what it found."""
    torch.manual_seed(0)  # 4% of draws do not reach the bound
    facts, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: Watching(), faults.append, compare=lambda watching, more: facts.extend(more)
    )

    def close():
        finder.close()
        assert faults == []
        return [fact for fact in facts if isinstance(fact, ObjectLedger) and fact.untrained_rows >= MIN_ROWS]

    yield close
    finder.close()


def trained(model, steps=5):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        model(INPUTS).square().mean().backward()
        optimizer.step()
    return model


def evaluate(model, grad=False, mode=False):
    model.train(mode)
    with torch.set_grad_enabled(grad):
        model(INPUTS)
        model(INPUTS)


@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.parametrize("kept", [True, False], ids=["the trained one is there", "it is gone"])
def test_a_second_instance_is_found(found, kept, grad):
    model = trained(Net())
    if not kept:
        del model
    evaluate(Net(), grad)
    assert found() == [ObjectLedger("Net", untrained_rows=64)]


def test_an_evaluation_in_training_mode_is_one_without_gradients(found):
    trained(Net())
    evaluate(Net(), mode=True)
    assert found() == [ObjectLedger("Net", untrained_rows=64)]


def loaded(model):
    other = Net()
    other.load_state_dict(model.state_dict())
    return other


def averaged(model):
    other = Net()
    for own, theirs in zip(other.parameters(), model.parameters(), strict=True):
        own.data.copy_(0.7 * theirs.data + 0.3 * own.data)
    return other


def read_back(model, tmp_path):
    torch.save(model, tmp_path / "model.pt")
    return torch.load(tmp_path / "model.pt", weights_only=False)


@pytest.mark.parametrize("kept", [True, False], ids=["the trained one is there", "it is gone"])
@pytest.mark.parametrize("make", [loaded, averaged, copy.deepcopy, read_back])
def test_an_instance_with_weights_of_the_trained_one_is_none(found, make, kept, tmp_path):
    # Trained far enough that its weights leave the interval from which they were drawn.
    model = trained(Net(), steps=200)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2)
    other = make(model, tmp_path) if make is read_back else make(model)
    if not kept:
        del model
    evaluate(other)
    assert found() == []


def test_a_model_beside_the_trained_one_is_a_baseline(found):
    model = trained(Net())
    evaluate(Net())
    evaluate(model)
    assert found() == []


def test_a_row_that_tells_the_shape_is_no_evaluation(found):
    trained(Net())
    with torch.no_grad():
        Net()(torch.zeros(1, 6))
    assert found() == []


def test_an_instance_that_loads_after_its_first_call(found):
    model, other = trained(Net()), Net()
    evaluate(other)
    other.load_state_dict(model.state_dict())
    evaluate(other)
    assert found() == []


def test_before_the_training_goes_on_it_says_nothing(found):
    model = Net()
    trained(model)
    evaluate(Net())
    trained(model)
    assert found() == []


@pytest.mark.parametrize("make", [lambda: Net(16), lambda: Net().requires_grad_(False), lambda: nn.Linear(6, 2)])
def test_a_model_of_another_kind_is_left_alone(found, make):
    trained(Net())
    evaluate(make())
    assert found() == []

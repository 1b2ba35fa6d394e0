"""Averages of a trained model that are evaluated without its running statistics, as a finder of loops sees it."""

import copy

import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn, update_bn

from diagnostics.collectors.pytorch.discover.loops import LoopFinder
from diagnostics.facts.calls import ObjectLedger
from tests.pytorch.discover.watching import Watching

INPUTS = 3 + 2 * torch.randn(64, 6, generator=torch.Generator().manual_seed(0))


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.norm, self.out = nn.Linear(6, 32), nn.BatchNorm1d(32), nn.Linear(32, 2)

    def forward(self, inputs):
        return self.out(torch.relu(self.norm(self.hidden(inputs))))


@pytest.fixture
def found():
    """Return a function that closes the finder, and gives what it found."""
    facts, faults = [], []
    finder = LoopFinder(
        lambda model, optimizers: Watching(), faults.append, compare=lambda watching, more: facts.extend(more)
    )

    def close():
        finder.close()
        assert faults == []
        return [fact for fact in facts if isinstance(fact, ObjectLedger) and fact.stale_layers]

    yield close
    finder.close()


def train(model, after_step=lambda: None, steps=25):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(steps):
        optimizer.zero_grad()
        (model(INPUTS) - 1).square().mean().backward()
        optimizer.step()
        after_step()


def evaluate(model):
    model.eval()
    with torch.no_grad():
        model(INPUTS)


def averaged(average, model, decay=0.9, buffers=False):
    def step():
        with torch.no_grad():
            for mine, weight in zip(average.parameters(), model.parameters(), strict=True):
                mine.mul_(decay).add_(weight, alpha=1 - decay)
            for mine, buffer in zip(average.buffers(), model.buffers(), strict=True):
                if buffers:
                    mine.copy_(buffer)

    return step


def test_a_copy_that_follows_the_parameters_is_found(found):
    model = Net()
    average = copy.deepcopy(model)
    train(model, averaged(average, model))
    evaluate(average)
    assert found() == [ObjectLedger("Net", stale_layers=("norm",), batches=25)]


def test_a_teacher_that_began_elsewhere_is_found(found):
    model, teacher = Net(), Net()
    train(model, averaged(teacher, model, decay=0.8))
    evaluate(model)
    evaluate(teacher)
    assert len(found()) == 1


def test_weights_that_were_copied_by_name_are_found(found):
    model, other = Net(), Net()
    train(model)
    with torch.no_grad():
        for name, weight in other.named_parameters():
            weight.copy_(model.get_parameter(name))
    evaluate(other)
    assert len(found()) == 1


def test_pytorchs_average_keeps_its_buffers_in_step(found):
    model = Net()
    average = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
    train(model, lambda: average.update_parameters(model))
    evaluate(average.module)
    assert found() == []


def test_an_average_with_its_buffers_is_left_alone(found):
    model = Net()
    average = copy.deepcopy(model)
    train(model, averaged(average, model, buffers=True))
    evaluate(average)
    assert found() == []


def test_statistics_that_are_measured_later_are_left_alone(found):
    model = Net()
    average = AveragedModel(model)
    train(model, lambda: average.update_parameters(model))
    update_bn([INPUTS], average)
    evaluate(average.module)
    assert found() == []


def test_the_weights_of_the_start_are_a_baseline(found):
    model = Net()
    start = copy.deepcopy(model)
    train(model)
    evaluate(start)
    assert found() == []


def test_a_random_network_to_imitate_is_left_alone(found):
    model, random = Net(), Net()
    evaluate(random)
    train(model, lambda: evaluate(random))
    evaluate(random)
    assert found() == []


def test_a_look_at_a_young_average_is_left_alone(found):
    model = Net()
    average = copy.deepcopy(model)
    train(model, averaged(average, model), steps=5)
    evaluate(average)
    assert found() == []

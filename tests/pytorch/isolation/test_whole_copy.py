"""A copied model computes with its own weights, in its own mode, whatever its forward was replaced by."""

import functools
import types

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from diagnostics.collectors.isolation.weak_twin import weak_twin
from diagnostics.collectors.isolation.whole_copy import whole_copy
from diagnostics.run.observer import ScriptObserver

INPUTS = torch.ones(4, 3)


class Dropping(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)

    def forward(self, x):
        return F.dropout(self.layer(x), 0.5, self.training)


def bound(model):
    model.forward = types.MethodType(type(model).forward, model)


def around_the_first(model):
    """As TRL does for each causal language model that it fine-tunes."""
    first = model.forward

    @functools.wraps(type(model).forward)
    def forward(self, x):
        return first(x)

    model.forward = types.MethodType(forward, model)


def around_twice(model):
    around_the_first(model)
    around_the_first(model)


def as_a_partial(model):
    model.forward = functools.partial(lambda owner, x: type(model).forward(owner, x), model)


def by_a_default(model):
    model.forward = lambda x, *, first=model.forward: first(x)


def through_itself(model):
    def forward(x, times=1):
        return forward(x, 0) if times else type(model).forward(model, x)

    model.forward = forward


def in_a_hook(model):
    model.forward = lambda x: x
    model.register_forward_hook(lambda _, inputs, __: type(model).forward(model, *inputs))


WAYS = [bound, around_the_first, around_twice, as_a_partial, by_a_default, through_itself, in_a_hook]


@pytest.mark.parametrize("of", [lambda model: model, weak_twin], ids=["model", "twin"])
@pytest.mark.parametrize("patch", WAYS)
def test_a_patched_forward_runs_on_the_copy(patch, of):
    model = Dropping()
    patch(model)
    copied = whole_copy(of(model)).eval()
    with torch.no_grad():
        copied.layer.weight.fill_(1.0)
        copied.layer.bias.zero_()
    assert torch.equal(copied(INPUTS), torch.full((4, 3), 3.0))
    assert model.training
    assert not torch.equal(model.eval()(INPUTS), torch.full((4, 3), 3.0))


def test_a_loss_beside_the_model_reads_the_copy():
    model = Dropping()
    copied, loss = whole_copy((model, lambda: model.layer.weight.sum()))
    loss().backward()
    assert copied.layer.weight.grad is not None
    assert model.layer.weight.grad is None


def test_a_lambda_over_a_submodule_reads_the_copy():
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = nn.ModuleDict({"inner": nn.Linear(2, 2)})
            parts = self.parts
            self.function = lambda x: parts.inner(x)

        def forward(self, x):
            return self.function(x)

    model = whole_copy(Block())
    with torch.no_grad():
        model.parts.inner.weight.zero_()
        model.parts.inner.bias.zero_()
        assert model(torch.ones(1, 2)).tolist() == [[0.0, 0.0]]


def test_functions_that_read_no_part_of_it_stay_as_they_are():
    model, teacher = Dropping(), Dropping()
    model.activation, model.teach = F.relu, lambda x: teacher(x)
    copied = whole_copy(model)
    assert copied.activation is F.relu
    assert copied.teach is model.teach


@pytest.mark.parametrize("patch", [around_the_first, through_itself])
def test_the_second_look_runs_a_patched_forward_in_evaluation_mode(patch):
    torch.manual_seed(0)
    run, model = ScriptObserver(looks_again=True), Dropping()
    patch(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(30):
        inputs = torch.randn(16, 3)
        loss = F.cross_entropy(model(inputs), inputs.argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    run.close()
    assert run.look_again(60.0).status == "passed"
    assert run.faults == []
    (report,) = run.watched()
    assert [finding.rule for finding in report.findings] == []
    assert model.training

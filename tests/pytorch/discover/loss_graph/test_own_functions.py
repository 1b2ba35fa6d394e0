"""Operations of a script's own in the graph of the first loss, and whether their backward reads its gradient."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.autograd.function import once_differentiable

from diagnostics.collectors.pytorch.discover.loss_graph.graph_shapes import graph_nodes
from diagnostics.collectors.pytorch.discover.loss_graph.own_functions import ignored_gradient
from diagnostics.run.observer import ScriptObserver


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x


class Derivative(Square):
    @staticmethod
    def backward(ctx, grad_output):
        (x,) = ctx.saved_tensors
        return 2 * x


class Wrapped(Square):
    @staticmethod
    @once_differentiable
    def backward(ctx, grad_output):
        return 2 * ctx.saved_tensors[0]


class Several(Square):
    @staticmethod
    def backward(ctx, *grads):
        return ctx.saved_tensors[0] + ctx.saved_tensors[0]


class Chained(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return 2 * ctx.saved_tensors[0] * grad_output


class OfAllGradients(Square):
    @staticmethod
    def backward(ctx, *grads):
        return 2 * ctx.saved_tensors[0] * grads[0]


class StraightThrough(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return grad_output


class WithinAFunction(Square):
    @staticmethod
    def backward(ctx, grad_output):
        def times(x):
            return x * grad_output

        return times(2 * ctx.saved_tensors[0])


class Stopped(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return torch.zeros_like(ctx.saved_tensors[0])


class Nothing(Square):
    @staticmethod
    def backward(ctx, grad_output):
        return None


def loss_of(function, shape=(4, 3)):
    return function.apply(torch.ones(shape, requires_grad=True)).sum()


@pytest.mark.parametrize("function", [Derivative, Wrapped, Several])
def test_a_backward_that_reads_no_gradient_is_found(function):
    found = ignored_gradient(graph_nodes(loss_of(function)))
    assert (found.function, found.shape) == (function.__name__, (4, 3))


def test_its_gradient_is_named():
    assert ignored_gradient(graph_nodes(loss_of(Derivative))).given == ("grad_output",)


@pytest.mark.parametrize(
    "function",
    [Chained, OfAllGradients, StraightThrough, WithinAFunction, Stopped, Nothing],
    ids=lambda it: it.__name__,
)
def test_other_backwards_are_left_alone(function):
    assert ignored_gradient(graph_nodes(loss_of(function))) is None


def test_a_loss_may_take_its_gradient_for_1():
    assert ignored_gradient(graph_nodes(loss_of(Derivative, shape=()))) is None


def test_it_is_reported_of_a_script():
    run = ScriptObserver()
    try:
        model, inputs = nn.Linear(6, 3), torch.randn(32, 6)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            (Derivative.apply(model(inputs)) - 1).pow(2).mean().backward()
            optimizer.step()
    finally:
        run.close()
    assert not run.faults
    found = {finding.rule for report in run.examined for finding in report.findings}
    assert "ignored-output-gradient" in found

"""How far back the gradient reaches in real recurrent layers."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

import diagnostics
from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.pytorch.watch.metrics.live_graphs import LiveGraphs
from diagnostics.collectors.pytorch.watch.metrics.recurrent_gradients import RecurrentGradients
from diagnostics.collectors.pytorch.watch.record.model_hooks import ModuleHooks
from diagnostics.facts.layers import PARTS

LENGTH = 32


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


class Reader(nn.Module):
    """Reads a sequence and answers after the last position."""

    def __init__(self, kind="RNN", **options):
        super().__init__()
        self.memory = getattr(nn, kind)(4, 8, **options)
        self.head = nn.Linear(8 * (2 if options.get("bidirectional") else 1), 3)

    def forward(self, inputs):
        return self.head(self.memory(inputs)[0][:, -1] if self.memory.batch_first else self.memory(inputs)[0][-1])


class Alone(RecurrentGradients):
    """This probe without the others, its hooks put on and taken off as the watcher does it for all of them."""

    def __init__(self, model):
        super().__init__(SimpleNamespace(model=model, hooks=ModuleHooks(model), guard=FaultGuard()))

    def open(self, step):
        self.close()
        self.on_modules(step)
        self.subject.hooks.attach()

    def close(self):
        self.subject.hooks.close()
        self.on_unhooked()

    def seen(self):
        self.on_read(0)
        return next(iter(self.facts()), None)


def profile_of(model, inputs):
    """Return what is seen in one pass, and the gradient by position as PyTorch computes it on its own."""
    look = Alone(model)
    look.open(5)
    output = model(inputs)
    look.close()
    output.square().sum().backward()
    (layer,) = look.seen().layers
    assert (layer.steps.tolist(), layer.lengths.tolist()) == ([5], [LENGTH])
    return layer.profiles[0]


def expected(model, inputs):
    wanted = inputs.detach().clone().requires_grad_()
    model(wanted).square().sum().backward()
    axis = 1 if model.memory.batch_first else 0
    largest = wanted.grad.abs().movedim(axis, 0).reshape(LENGTH, -1).amax(1)
    return largest.reshape(PARTS, -1).amax(1).tolist()


class TestProfile:
    @pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
    @pytest.mark.parametrize("options", [{"batch_first": True}, {}, {"batch_first": True, "bidirectional": True}])
    @pytest.mark.parametrize("asks", [True, False], ids=["input asks for a gradient", "raw input"])
    def test_is_the_gradient_of_the_input(self, kind, options, asks):
        model = Reader(kind, **options)
        inputs = torch.randn(6, LENGTH, 4) if options else torch.randn(LENGTH, 6, 4)
        seen = profile_of(model, inputs.clone().requires_grad_(asks))
        assert seen.tolist() == pytest.approx(expected(model, inputs), rel=1e-4)

    @pytest.mark.parametrize("asks", [True, False], ids=["input asks for a gradient", "raw input"])
    def test_of_packed_sequences_has_their_positions(self, asks):
        memory = nn.RNN(4, 8, batch_first=True)
        inputs = torch.randn(3, LENGTH, 4, requires_grad=asks)
        look = Alone(memory)
        look.open(0)
        _, state = memory(pack_padded_sequence(inputs, [LENGTH, 20, 7], batch_first=True))
        look.close()
        state.square().sum().backward()
        profile = look.seen().layers[0].profiles[0]
        alone = inputs.detach().clone().requires_grad_()
        memory(pack_padded_sequence(alone, [LENGTH, 20, 7], batch_first=True))[1].square().sum().backward()
        largest = alone.grad.abs().amax((0, 2)).reshape(PARTS, -1).amax(1)
        assert profile.tolist() == pytest.approx(largest.tolist(), rel=1e-4)

    def test_looking_changes_no_gradient_and_draws_nothing(self):
        model = Reader("LSTM", num_layers=2, dropout=0.5, batch_first=True)
        inputs = torch.randn(6, LENGTH, 4)
        grads, draws = [], []
        for looks in (False, True):
            torch.manual_seed(7)
            model.zero_grad()
            look = Alone(model)
            if looks:
                look.open(0)
            output = model(inputs)
            look.close()
            output.square().sum().backward()
            grads.append([p.grad.clone() for p in model.parameters()])
            draws.append(torch.rand(3))
        assert all(torch.equal(one, other) for one, other in zip(*grads, strict=True))
        assert torch.equal(*draws)

    def test_short_sequences_are_left_out(self):
        model = Reader(batch_first=True)
        look = Alone(model)
        look.open(0)
        model(torch.randn(2, PARTS - 1, 4)).sum().backward()
        assert look.seen() is None

    @pytest.mark.parametrize("asks", [False, True], ids=["raw inputs", "inputs that ask for a gradient"])
    def test_no_graph_outlives_its_step(self, asks):
        model = nn.LSTM(4, 8, batch_first=True)
        look, graphs = Alone(model), LiveGraphs(None)
        for step in range(6):
            inputs = torch.randn(2, 2 * PARTS, 4, requires_grad=asks) * 1
            look.open(step)
            output, _ = model(inputs)
            look.close()
            graphs.on_pass_end(step, output, None)
            output.square().sum().backward()
            look.on_read(step)
            del output, inputs
        assert not next(graphs.facts()).alive.any()
        assert look.seen().layers[0].steps.tolist() == list(range(6))


def train(kind, bias=0.0, where=0, steps=240):
    """Train on sequences of which one position tells the class."""
    torch.manual_seed(1)
    model = Reader(kind, batch_first=True)
    model.memory = getattr(nn, kind)(4, 32, batch_first=True)
    model.head = nn.Linear(32, 3)
    if bias:
        with torch.no_grad():
            model.memory.bias_ih_l0[32:64] = bias  # the forget gate's
    optimizer = torch.optim.Adam(model.parameters(), 1e-2 if kind == "LSTM" else 1e-3)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(steps):
            inputs = torch.randn(32, 40, 4)
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(inputs), inputs[:, where, :3].argmax(1))
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            watch.step(loss)
    report = watch.report()
    assert report.faults == ()
    return report, report.history.losses.values[-20:].mean()


class TestReport:
    def test_an_rnn_that_cannot_see_the_beginning_is_named(self):
        report, loss = train("RNN")
        assert loss > 1.0  # ln 3 is 1.1
        (found,) = [finding for finding in report.findings if finding.rule == "vanishing-gradients"]
        assert (found.evidence["module"], found.evidence["length"]) == ("memory", 40)

    def test_one_that_needs_only_the_end_learns_and_is_left_alone(self):
        report, loss = train("RNN", where=-2)
        assert loss < 0.6
        assert report.ok, str(report)

    def test_an_lstm_that_remembers_learns_and_is_left_alone(self):
        report, loss = train("LSTM", bias=3.0, steps=400)
        assert loss < 0.8
        assert report.ok, str(report)

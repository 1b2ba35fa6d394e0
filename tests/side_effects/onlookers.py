"""Trains a small network beside another observer; prints what that one recorded, and what was learned.

$ python tests/side_effects/onlookers.py dispatch_mode during
"""

import contextlib
import hashlib
import json
import sys
from collections import Counter

import torch
from torch import nn
from torch.autograd.graph import save_on_cpu, saved_tensors_hooks
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.checkpoint import checkpoint

STEPS, BATCH = 12, 32
WHEN = ("before", "during", "after")  # from before the first step on, in it alone, or from after it on
record = []  # of the onlooker


class Net(nn.Module):
    """A layer whose statistics count its calls, and a head; `through` is what calls the layer."""

    def __init__(self):
        super().__init__()
        self.first, self.norm, self.head = nn.Linear(8, 16), nn.BatchNorm1d(16), nn.Linear(16, 3)
        self.dropout = nn.Dropout(0.2)
        self.through = lambda block, inputs: block(inputs)

    def block(self, inputs):
        return self.dropout(torch.relu(self.norm(self.first(inputs))))

    def forward(self, inputs, labels=None):
        scores = self.head(self.through(self.block, inputs))
        return scores if labels is None else nn.functional.cross_entropy(scores, labels)


torch.manual_seed(0)
generator = torch.Generator().manual_seed(1)
inputs = torch.randn(BATCH * STEPS, 8, generator=generator)
labels = (inputs @ torch.randn(8, 3, generator=generator)).argmax(1)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)


def plain_step(called, inputs, labels, loss_inside=False):
    """Train on a batch."""
    optimizer.zero_grad()
    loss = called(inputs, labels) if loss_inside else nn.functional.cross_entropy(called(inputs), labels)
    loss.backward()
    optimizer.step()
    return loss


# Those who look once, at a model.


def jit_trace():
    """Trace, as `SummaryWriter.add_graph` does."""
    model.eval()
    record.append(str(torch.jit.trace(model, inputs[:2], strict=True).graph))
    model.train()


def jit_trace_unchecked():
    """Trace, with gradients and without the check."""
    model.eval()
    record.append(str(torch.jit.trace(model, inputs[:2], check_trace=False).graph))
    model.train()


def symbolic_trace():
    """Trace by torch.fx."""
    record.append(str(torch.fx.symbolic_trace(nn.Sequential(model.first, model.norm, model.head)).graph))


def proxies():
    """Trace by make_fx, forward and backward, with the numbers and without."""
    named, buffers = dict(model.named_parameters()), dict(model.named_buffers())

    def gradient(parameters, buffers, inputs):
        scores = torch.func.functional_call(model, (parameters, buffers), (inputs,))
        return torch.autograd.grad(scores.square().sum(), list(parameters.values()))

    model.eval()
    for mode in ("real", "fake"):
        record.append(make_fx(gradient, tracing_mode=mode)(named, buffers, inputs[:4]).code)
    model.train()


def exported():
    """Export, in both ways."""
    model.eval()
    for strict in (False, True):
        program = torch.export.export(model, (inputs[:4],), strict=strict)
        record.append(_nodes(program))
    model.train()


def transformed():
    """Take a gradient by torch.func."""

    def loss(parameters):
        return torch.func.functional_call(model, parameters, (inputs[:4],)).square().sum()

    model.eval()
    found = torch.func.grad(loss)({name: one.detach() for name, one in model.named_parameters()})
    record.append({name: float(gradient.sum()).hex() for name, gradient in found.items()})
    model.train()


# Those who look on for some time. Each yields what makes a step.


def _nodes(program):
    return [f"{node.op} {getattr(node.target, '__name__', node.target)}" for node in program.graph.nodes]


def _compiled(function, **options):
    def backend(graph, _inputs):  # in which order a graph takes its inputs is no matter
        record.append(sorted(_nodes(graph)))
        return graph

    return torch.compile(function, backend=backend, **options)


@contextlib.contextmanager
def compiled_model():
    """Compile the model."""
    called = _compiled(model)
    yield lambda *batch: plain_step(called, *batch)


@contextlib.contextmanager
def compiled_loss():
    """Compile a model that computes its loss itself."""
    called = _compiled(model)
    yield lambda *batch: plain_step(called, *batch, loss_inside=True)


@contextlib.contextmanager
def compiled_in_place():
    """Compile the model by its own method."""
    model.compile(backend="aot_eager")
    yield lambda *batch: plain_step(model, *batch)
    model._compiled_call_impl = None
    record.append(_compilations())


@contextlib.contextmanager
def compiled_step():
    """Compile the whole step."""
    step = _compiled(plain_step)
    yield lambda *batch: step(model, *batch)
    record.append(_compilations())


@contextlib.contextmanager
def compiled_optimizer():
    """Compile the step of the optimizer, as PyTorch's recipe does."""
    update = _compiled(lambda: optimizer.step())

    def step(inputs, labels):
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        update()
        return loss

    yield step
    record.append(_compilations())


def _compilations():
    return dict(torch._dynamo.utils.counters["stats"])


@contextlib.contextmanager
def _stepping_in(context):
    with context:
        yield lambda *batch: plain_step(model, *batch)


@contextlib.contextmanager
def packed_tensors():
    """Count what is saved and read, and let nobody read but the backward pass of the script."""
    counts, reading = Counter(), []

    def pack(tensor):
        counts["packed"] += 1
        return [tensor]

    def unpack(held):
        counts["read"] += 1
        assert reading, "a tensor was read outside of the script's own backward pass"
        return held.pop()  # once

    def step(inputs, labels):
        optimizer.zero_grad()
        with saved_tensors_hooks(pack, unpack):
            loss = nn.functional.cross_entropy(model(inputs), labels)
            reading.append(True)
            loss.backward()
            reading.clear()
        optimizer.step()
        return loss

    yield step
    record.append(dict(counts))


@contextlib.contextmanager
def offloaded():
    """Keep on the host what is saved."""
    with _stepping_in(save_on_cpu()) as step:
        yield step


@contextlib.contextmanager
def _checkpointed(reentrant):
    def through(block, inputs):
        return checkpoint(block, inputs.requires_grad_(), use_reentrant=reentrant)

    before, model.through = model.through, through
    yield lambda inputs, labels: plain_step(model, inputs.clone(), labels)
    model.through = before


def checkpointed():
    """Compute a block again in the backward pass."""
    return _checkpointed(reentrant=False)


def checkpointed_reentrant():
    """Do so in the older way, by a backward pass within the backward pass."""
    return _checkpointed(reentrant=True)


@contextlib.contextmanager
def profiled():
    """Profile, and record each operation."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        yield lambda *batch: plain_step(model, *batch)
    record.append([event.name for event in profile.events()])


class _Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        record.append(str(function))
        return function(*args, **(kwargs or {}))


class _Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        record.append(getattr(function, "__qualname__", str(function)))
        return function(*args, **(kwargs or {}))


def dispatch_mode():
    """Record each operation."""
    return _stepping_in(_Dispatched())


def function_mode():
    """Record each function of PyTorch that is called."""
    return _stepping_in(_Functions())


@contextlib.contextmanager
def _followed(set_function):
    def follow(frame, event, _argument):
        if frame.f_code.co_filename == __file__:
            record.append([frame.f_code.co_name, frame.f_lineno, event])
        return follow

    def step(*batch):
        set_function(follow)
        loss = plain_step(model, *batch)
        set_function(None)
        return loss

    yield step


def debugger():
    """Follow each line, as a debugger does."""
    return _followed(sys.settrace)


def python_profiler():
    """Follow each call."""
    return _followed(sys.setprofile)


ONCE = (jit_trace, jit_trace_unchecked, symbolic_trace, proxies, exported, transformed)
LONG = (
    *(compiled_model, compiled_loss, compiled_in_place, compiled_step, compiled_optimizer),
    *(packed_tensors, offloaded, checkpointed, checkpointed_reentrant),
    *(profiled, dispatch_mode, function_mode, debugger, python_profiler),
)


def train(onlooker, when):
    """Train, and return the last loss."""
    with contextlib.ExitStack() as stack:
        step = None

        def begins():
            nonlocal step
            if onlooker in ONCE:
                onlooker()
            else:
                step = stack.enter_context(onlooker())

        if when == "before":
            begins()
        for number in range(STEPS):
            batch = slice(number * BATCH, (number + 1) * BATCH)
            if when == "during" and number == 0 and onlooker in ONCE:
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(inputs[batch]), labels[batch])
                begins()
                loss.backward()
                optimizer.step()
                continue
            if when == "during" and number == 0:
                with onlooker() as one_step:
                    loss = one_step(inputs[batch], labels[batch])
                continue
            if when == "after" and number == 1:
                begins()
            loss = (step or (lambda *given: plain_step(model, *given)))(inputs[batch], labels[batch])
    return loss


if __name__ == "__main__":
    chosen, when = {one.__name__: one for one in (*ONCE, *LONG)}[sys.argv[1]], sys.argv[2]
    loss = train(chosen, when)
    learned = b"".join(one.detach().numpy().tobytes() for one in model.state_dict().values())
    print(
        "loss",
        float(loss.detach()).hex(),
        "random",
        torch.rand(1).item(),
    )
    print("weights", hashlib.sha256(learned).hexdigest())
    print("recorded", len(record), json.dumps(record))

"""`is_recorded` tells whether what a thread computes becomes part of another program, or has no numbers."""

import threading

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.isolation.recording import is_recorded, unless_recorded
from diagnostics.taps.tap import Tap


class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


class Dispatched(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return function(*args, **(kwargs or {}))


def under_fake_tensors(function, inputs):
    with FakeTensorMode() as mode:
        return function(mode.from_tensor(inputs))


def within_a_compiled_function(function, inputs):
    def outer(inputs):
        torch._dynamo.graph_break()
        return function(inputs)

    return torch.compile(outer, backend="eager")(inputs)


def exported(function, inputs):
    class Model(torch.nn.Module):
        def forward(self, inputs):
            return function(inputs)

    return torch.export.export(Model(), (inputs,), strict=False)


RECORDERS = {
    "jit.trace": lambda function, inputs: torch.jit.trace(function, inputs, check_trace=False),
    "make_fx": lambda function, inputs: make_fx(function)(inputs),
    "make_fx of fake tensors": lambda function, inputs: make_fx(function, tracing_mode="fake")(inputs),
    "symbolic_trace": lambda function, inputs: torch.fx.symbolic_trace(function),
    "compile": within_a_compiled_function,
    "export": exported,
    "vmap": lambda function, inputs: torch.func.vmap(function)(inputs),
    "grad": lambda function, inputs: torch.func.grad(lambda given: function(given).sum())(inputs),
    "fake tensors": under_fake_tensors,
}


@pytest.mark.parametrize("record", RECORDERS.values(), ids=RECORDERS)
class TestWhileSomebodyRecords:
    def test_it_is_told_and_only_meanwhile(self, record):
        told = []

        def function(inputs):
            told.append(is_recorded())
            return inputs * 2

        assert not is_recorded()
        record(function, torch.ones(3))
        assert told
        assert all(told)
        assert not is_recorded()

    def test_no_hook_runs(self, record):
        class Namespace:
            @staticmethod
            def double(inputs):
                return inputs * 2

        heard, tap, guard = [], Tap("double", Namespace), FaultGuard()
        for event, name in ((tap.before, "before"), (tap.ended, "ended"), (tap.after, "after")):
            event.subscribe(lambda *_, name=name: heard.append(name))
        hook = unless_recorded(lambda: heard.append("hook"))

        def function(inputs):
            guard.run("part", heard.append, "run")
            guard.attempt(heard.append, "attempt")
            hook()
            return Namespace.double(inputs)

        record(function, torch.ones(3))
        assert heard == []
        function(torch.ones(3))
        assert heard == ["run", "attempt", "hook", "before", "ended", "after"]


@pytest.mark.parametrize(
    "context", [Functions, Dispatched, torch.no_grad, torch.inference_mode, lambda: torch.device("cpu")]
)
def test_a_mode_of_the_script_does_not_count(context):
    with context():
        assert not is_recorded()


def test_another_thread_is_not_recorded():
    told = []

    def function(inputs):
        thread = threading.Thread(target=lambda: told.append(is_recorded()))
        thread.start()
        thread.join()
        return inputs * 2

    torch.jit.trace(function, torch.ones(3), check_trace=False)
    assert told == [False]

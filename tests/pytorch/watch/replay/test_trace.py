"""A trace by itself: hooks for one pass, and the facts of it."""

import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.replay.module_calls import Trace


def traced(model, inputs, faults):
    trace = Trace(model, [4], faults.append)
    trace.open(4, ((inputs,), {}))
    output = model(inputs)
    trace.close(output)
    return trace


class TestTrace:
    def test_holds_the_modules_and_then_the_model_itself(self):
        model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.ReLU())
        nn.init.eye_(model[0].weight)
        (facts,) = traced(model, torch.tensor([[-3.0, 2.0]]), []).traces
        assert facts.step == 4
        assert [(f.module, f.kind) for f in facts.frames] == [("0", "Linear"), ("1", "ReLU"), ("", "Sequential")]
        assert [(f.outputs.lowest, f.outputs.highest) for f in facts.frames] == [(2, 3), (0, 2), (0, 2)]
        assert (facts.frames[2].inputs.lowest, facts.frames[2].inputs.highest) == (2, 3)

    def test_of_a_model_that_is_one_layer_is_that_layer(self):
        (facts,) = traced(nn.Linear(2, 1), torch.ones(1, 2), []).traces
        assert [(f.module, f.kind) for f in facts.frames] == [("", "Linear")]
        assert facts.frames[0].weights is not None

    def test_takes_its_hooks_off(self):
        model = nn.Sequential(nn.Linear(2, 2), nn.ReLU())
        traced(model, torch.ones(1, 2), [])
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())

    def test_tells_of_its_first_fault_and_keeps_nothing(self, monkeypatch):
        model, faults = nn.Sequential(nn.Linear(2, 2), nn.ReLU()), []
        trace = Trace(model, [0], faults.append)
        trace.open(0, ((torch.ones(1, 2),), {}))
        monkeypatch.setattr(
            "diagnostics.collectors.pytorch.watch.replay.module_calls.value_range", lambda values: 1 / 0
        )
        output = model(torch.ones(1, 2))
        trace.close(output)
        assert [type(fault) for fault in faults] == [ZeroDivisionError]
        assert trace.traces == []

    def test_that_was_abandoned_keeps_nothing(self):
        model = nn.Linear(2, 2)
        trace = Trace(model, [0], [].append)
        trace.open(0, ((torch.ones(1, 2),), {}))
        trace.abandon()
        trace.close(model(torch.ones(1, 2)))
        assert trace.traces == []

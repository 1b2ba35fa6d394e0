"""Following a forward pass, module by module and probe by probe."""

import pytest
import torch
from torch import nn

from diagnostics.collectors.pytorch.watch.replay.module_calls import calls_seen
from diagnostics.tensor_probe import probe


class Gate(nn.Module):
    """Computes between its modules, and shows what it computes."""

    def __init__(self, factor=1.0):
        super().__init__()
        self.first, self.second, self.factor = nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False), factor
        for layer in (self.first, self.second):
            nn.init.eye_(layer.weight)

    def forward(self, x):
        x = probe(self.first(x), "after first")
        x = probe(x * self.factor, "after the product")
        return self.second(x)


def seen(model, x, **options):
    with calls_seen(model, len(x), False, **options) as calls, torch.no_grad():
        model(x)
    return calls


class TestCallsSeen:
    def test_a_module_comes_after_those_within_it_and_a_probe_where_it_stands(self):
        calls = seen(Gate(2.0), torch.tensor([[1.0, 3.0]]))
        assert [(call.path, call.kind) for call in calls] == [
            ("first", "Linear"),
            ("after first", "probe in the model"),
            ("after the product", "probe in the model"),
            ("second", "Linear"),
            ("", "Gate"),
        ]
        assert [(c.outputs.lowest, c.outputs.highest) for c in calls] == [(1, 3), (1, 3), (2, 6), (2, 6), (2, 6)]

    def test_a_probe_has_no_weights_and_no_inputs(self):
        frame = seen(Gate(), torch.ones(1, 2))[1].frame()
        assert (frame.weights, frame.inputs, frame.dtype) == (None, None, "float32")

    def test_what_is_made_between_modules_is_pinned_down_by_a_probe(self):
        calls = seen(Gate(float("inf")), torch.tensor([[1.0, 1.0], [2.0, 2.0]]))
        assert next(call.path for call in calls if call.makes_it) == "after the product"
        assert calls[2].rows == (0, 1)

    def test_a_probe_is_not_blamed_for_what_came_in(self):
        calls = seen(Gate(), torch.tensor([[float("nan"), 1.0]]))
        assert [call.path for call in calls if call.makes_it] == []

    def test_an_exception_of_its_own_is_told_and_not_raised(self, monkeypatch):
        def broken(values):
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.replay.module_calls.value_range", broken)
        faults = []
        seen(Gate(), torch.ones(1, 2), failed=faults.append)
        assert str(faults[0]) == "on purpose"
        with pytest.raises(ZeroDivisionError):
            seen(Gate(), torch.ones(1, 2))

    def test_leaves_no_hook_and_no_listener(self):
        model = Gate()
        calls = seen(model, torch.ones(1, 2))
        model(torch.ones(1, 2))
        assert len(calls) == 5
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())

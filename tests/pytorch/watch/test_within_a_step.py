"""What `watch` shows of a single step: probes within the model, ranges, traces, and the batch that broke it."""

import re

import numpy as np
import pytest
import torch
from torch import nn

import diagnostics
from diagnostics import tensor_probe


class Layered(nn.Module):
    """Computes between its layers, and shows it; `broken` makes NaN there."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 8), nn.Linear(8, 3)

    def forward(self, inputs, broken=False):
        hidden = diagnostics.probe(self.first(inputs), "after first")
        if broken:
            hidden = torch.log(-hidden.abs())
        return self.second(diagnostics.probe(hidden, "after the logarithm"))


def train_layered(broken_at=None, steps=30, overwritten=False, compiled=False, **options):
    torch.manual_seed(0)
    model = Layered()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    called = torch.compile(model, backend="eager") if compiled else model
    inputs = torch.empty(4, 6)
    batches = []
    with diagnostics.watch(called, optimizer, **options) as watch:
        for step in range(steps):
            inputs = inputs.normal_() if overwritten else torch.randn(4, 6)
            batches.append(inputs.clone())
            optimizer.zero_grad()
            loss = called(inputs, broken=step == broken_at).square().mean()
            loss.backward()
            optimizer.step()
            watch.step(loss)
    return watch.report(), batches, model


class TestProbe:
    def test_names_the_place_between_two_modules_where_a_nan_began(self):
        report, _, _ = train_layered(broken_at=13)
        (finding,) = report.findings
        assert (finding.rule, finding.step) == ("non-finite-activations", 13)
        assert finding.message.startswith(
            'At step 13, the first NaN or inf came from the code just before the probe "after the logarithm" in '
            "the model, although its input was finite."
        )

    def test_is_listed_among_the_ranges(self):
        report, _, _ = train_layered()
        assert set(report.ranges.modules) == {"first", "second", "after first", "after the logarithm"}

    def test_is_silent_once_the_watch_is_over(self):
        train_layered()
        assert not tensor_probe._on


class TestRanges:
    def test_what_was_reached_before_the_nan_is_not_lost(self):
        report, _, _ = train_layered(broken_at=20, every=10)
        ranges = report.ranges
        at = ranges.modules.index("after the logarithm")
        assert np.isnan(ranges.highest[at])
        assert ranges.highest_steps[at] == 20
        assert 0 < ranges.finite[at] < 10
        assert ranges.finite_steps[at] < 20


class TestTrace:
    def test_records_every_module_of_the_steps_asked_for(self):
        report, batches, _ = train_layered(trace_steps=[1, 3], every=7)
        assert [trace.step for trace in report.traces] == [1, 3]
        frames = report.traces[1].frames
        assert [(frame.module, frame.kind) for frame in frames] == [
            ("first", "Linear"),
            ("after first", "probe in the model"),
            ("after the logarithm", "probe in the model"),
            ("second", "Linear"),
            ("", "Layered"),
        ]
        size = batches[3].abs()
        for frame in (frames[0], frames[-1]):
            assert (frame.inputs.lowest, frame.inputs.highest) == (float(size.min()), float(size.max()))
        assert frames[1].outputs == frames[0].outputs
        assert report.faults == ()

    def test_sees_the_weights_that_the_pass_used(self):
        report, _, _ = train_layered(trace_steps=range(2), steps=2)
        torch.manual_seed(0)
        first = Layered().first
        values = torch.cat([p.detach().flatten() for p in first.parameters()]).abs()
        assert report.traces[0].frames[0].weights.highest == float(values.max())
        assert report.traces[1].frames[0].weights != report.traces[0].frames[0].weights

    def test_of_a_pass_that_failed_is_thrown_away(self):
        model = Layered()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        with diagnostics.watch(model, optimizer, trace_steps=[0, 1]) as watch:
            for step in range(2):
                if step == 0:
                    with pytest.raises(RuntimeError):  # such as one that finds no memory
                        model(torch.randn(4, 5))
                model(torch.randn(4, 6)).sum().backward()
                optimizer.step()
        report = watch.report()
        assert [(trace.step, len(trace.frames)) for trace in report.traces] == [(1, 5)]
        assert report.faults == ()
        assert not any(m._forward_hooks or m._forward_pre_hooks for m in model.modules())

    def test_is_printed(self):
        report, _, _ = train_layered(trace_steps=[1])
        lines = str(report).splitlines()
        at = lines.index("step 1, every module in the order of completion")
        assert lines[at + 1].split() == ["smallest", "to", "largest", "|x|", "weights", "inputs", "outputs"]
        assert re.fullmatch(r"  first Linear( +\S+ to \S+){3}", lines[at + 2])

    def test_a_fault_of_its_own_costs_the_trace_and_nothing_else(self, monkeypatch):
        def broken(_):
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.replay.module_calls.value_range", broken)
        report, _, _ = train_layered(trace_steps=[1], steps=5)
        assert report.traces == ()
        assert report.faults == ("watching the trace ended: ZeroDivisionError: on purpose",)

    def test_of_a_compiled_model_is_said_not_to_be_covered(self):
        report, _, _ = train_layered(trace_steps=[1], steps=3, compiled=True)
        assert (report.traces, report.faults) == ((), ())
        stages = {stage.name: (stage.status, stage.detail) for stage in report.stages}
        assert stages["trace"] == (
            "not judged",
            "torch.compile fuses the modules: trace the model without it",
        )


class TestBatch:
    def test_is_the_one_that_broke_as_the_model_was_called_with_it(self, tmp_path):
        report, batches, _ = train_layered(broken_at=13)
        batch = report.batch()
        assert (batch.step, batch.size, batch.rows, batch.why_not) == (13, 4, (0, 1, 2, 3), "")
        assert torch.equal(batch.args[0], batches[13])
        assert batch.kwargs == {"broken": True}
        assert batch.fingerprint == int(report.history.steps.batch_fingerprints[13])
        assert list(tmp_path.iterdir()) == []

    def test_is_saved_on_request_and_loads_again(self, tmp_path):
        report, batches, _ = train_layered(broken_at=13)
        assert report.batch().save(tmp_path / "batch.pt") == tmp_path / "batch.pt"
        saved = torch.load(tmp_path / "batch.pt")
        assert torch.equal(saved["args"][0], batches[13])
        assert (saved["kwargs"], saved["step"], saved["rows"]) == ({"broken": True}, 13, (0, 1, 2, 3))

    def test_that_was_written_over_since_is_not_given_out(self, tmp_path):
        report, _, _ = train_layered(broken_at=13, overwritten=True, every=5)
        batch = report.batch()
        assert (batch.args, batch.why_not) == ((), "it was modified after the model had seen it")
        with pytest.raises(diagnostics.InvalidInput) as error:
            batch.save(tmp_path / "batch.pt")
        assert str(error.value) == (
            "The batch of step 13 cannot be saved: it was modified after the model had seen it."
        )

    def test_that_was_too_large_to_be_held_is_said_to_be_gone(self, monkeypatch):
        monkeypatch.setattr("diagnostics.collectors.pytorch.watch.replay.replay_buffer.INPUTS_LIMIT", 10)
        report, _, _ = train_layered(broken_at=13)
        assert report.batch().why_not == "no forward pass of that step was seen, or it was no longer held"
        assert repr(report.batch()).endswith("not kept: " + report.batch().why_not + ">")

    def test_of_an_update_that_broke_the_weights_is_the_one_before(self):
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        batches = []
        with diagnostics.watch(model, optimizer) as watch:
            for step in range(6):
                batches.append(torch.randn(4, 6))
                optimizer.zero_grad()
                loss = model(batches[-1]).square().mean()
                loss.backward()
                if step == 3:
                    optimizer.param_groups[0]["lr"] = float("inf")
                optimizer.step()
                watch.step(loss)
        report = watch.report()
        assert report.origin.kind == "optimizer step"
        assert torch.equal(report.batch().args[0], batches[3])

    def test_of_a_run_that_stayed_finite_is_asked_for_in_vain(self):
        report, _, _ = train_layered()
        with pytest.raises(diagnostics.InvalidInput) as error:
            report.batch()
        assert str(error.value) == ("batch() has no batch: every known loss and gradient of this run was finite.")

    def test_the_report_says_that_it_is_at_hand(self):
        report, _, _ = train_layered(broken_at=13)
        assert "To save the batch of step 13: report.batch().save('batch.pt')." in str(report).splitlines()

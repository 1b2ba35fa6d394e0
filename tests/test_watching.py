"""`watch` as its user sees it: what it says, what it leaves alone, what it refuses."""

import importlib.util
import json
import random
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import diagnostics
from diagnostics import tensor_probe
from diagnostics.probes import torch_watch

HEALTHY = Path(__file__).parent / "healthy"
PROGRAMS = sorted(p for p in HEALTHY.glob("*.py") if not p.stem.startswith(("keras_", "trainer_", "script_")))


class Network(nn.Module):
    """Layers with a state of their own: batch norm, dropout, a frozen part."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8)).requires_grad_(False).eval()
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
        self.head = nn.Linear(16, 3)

    def forward(self, inputs):
        return self.head(self.body(self.backbone(inputs)))


def train(watched, steps=45, make=torch.optim.AdamW, broken_at=None, report_at=None, **options):
    """Train from a fixed seed; return all that may not differ, and the watch."""
    random.seed(3)
    np.random.seed(3)
    torch.manual_seed(3)
    model = Network()
    optimizer = make(model.parameters(), lr=1e-2)
    watch = diagnostics.watch(model, optimizer, **options) if watched else None
    losses = []
    for step in range(steps):
        inputs = torch.randn(16, 6)
        labels = inputs[:, :3].argmax(1)
        if step == broken_at:
            inputs[2, 1] = float("nan")
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if watch is not None:
            watch.step(loss)
            if step == report_at:
                watch.report()
    if watch is not None:
        watch.close()
    state = {
        **model.state_dict(),
        **{f"grad {name}": p.grad for name, p in model.named_parameters() if p.grad is not None},
        "losses": torch.stack(losses),
        "random": torch.tensor([random.random(), np.random.rand(), *torch.rand(3)]),
    }
    return state, watch


def assert_same_bits(one, other):
    assert one.keys() == other.keys()
    for name in one:
        # Bytes, because NaN equals nothing.
        assert one[name].numpy().tobytes() == other[name].numpy().tobytes(), f"{name} changed"


class TestChangesNothing:
    @pytest.mark.parametrize("make", [torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad])
    @pytest.mark.parametrize("every", [1, 7, 20])
    def test_training_gives_the_same_bits_as_without(self, make, every):
        bare, _ = train(False, make=make)
        watched, watch = train(True, make=make, every=every, report_at=22)
        assert watch.report().faults == ()
        assert_same_bits(bare, watched)

    @pytest.mark.parametrize("every", [1, 20])
    def test_even_if_it_runs_a_broken_step_again(self, every):
        bare, _ = train(False, broken_at=13)
        watched, watch = train(True, broken_at=13, every=every)
        assert [finding.rule for finding in watch.report().findings] == ["non-finite-inputs"]
        assert_same_bits(bare, watched)

    def test_even_if_the_device_decides_what_is_kept(self, monkeypatch):
        plain = torch_watch.TorchWatch.__init__
        monkeypatch.setattr(
            torch_watch.TorchWatch,
            "__init__",
            lambda self, *arguments, **named: plain(self, *arguments, True, **named),
        )
        bare, _ = train(False, broken_at=13)
        watched, watch = train(True, broken_at=13)
        assert watch._probe._deferred
        assert watch.report().findings[0].step == 13
        assert_same_bits(bare, watched)

    def test_even_if_every_part_of_it_fails(self, monkeypatch):
        def broken(*_):
            raise ZeroDivisionError("on purpose")

        for part in ("_forward_begins", "_listen", "_before_step", "_after_step", "_read"):
            monkeypatch.setattr(torch_watch.TorchWatch, part, broken)
        bare, _ = train(False)
        watched, watch = train(True)
        assert_same_bits(bare, watched)
        report = watch.report()
        assert report.findings == ()
        assert "watching the forward passes ended: ZeroDivisionError: on purpose" in report.faults


class TestReport:
    def test_says_what_was_watched(self):
        _, watch = train(True)
        report = watch.report()
        assert report.title == "watched 45 steps of Network"
        assert report.ok
        stages = {stage.name: (stage.status, stage.detail) for stage in report.stages}
        assert stages["forward passes"] == ("passed", "45, batches of up to 16")
        assert re.fullmatch(r"\d\.\d+ in the first step, 0?\.?\d+ in the last", stages["loss"][1])
        assert re.fullmatch(r"norm \S+ to \S+ over 3 layers", stages["gradients"][1])
        assert stages["weights"] == ("passed", "kept, to run a broken step again")
        assert json.loads(report.to_json())["title"] == report.title

    def test_a_report_in_between_does_not_end_the_watch(self):
        _, watch = train(True, report_at=10)
        assert watch.report().title == "watched 45 steps of Network"

    def test_the_batch_that_held_a_nan_is_the_one_finding(self):
        _, watch = train(True, broken_at=13)
        report = watch.report()
        assert [(f.rule, f.step, f.severity) for f in report.findings] == [("non-finite-inputs", 13, "error")]
        assert report.findings[0].message.startswith(
            "The batch of step 13 holds NaN or infinity in input 0. It concerns 1 of the 16 examples (2, counted "
            "from 0)."
        )

    def test_without_the_loss_it_says_how_to_hand_it_over(self):
        model = Network()
        with diagnostics.watch(model, torch.optim.SGD(model.parameters(), lr=0.1)) as watch:
            pass
        stages = {stage.name: stage.detail for stage in watch.report().stages}
        assert stages["loss"] == "the loop handed over none: watch.step(loss)"
        assert stages["forward passes"] == "none was seen: hand over the model that the loop calls"

    def test_an_optimizer_of_another_model_is_a_finding_and_not_an_error(self):
        model, other = nn.Linear(6, 3), nn.Linear(6, 3)
        optimizer = torch.optim.Adam(other.parameters())
        with diagnostics.watch(model, optimizer, every=5) as watch:
            for _ in range(20):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(torch.randn(8, 6)), torch.randint(3, (8,)))
                loss.backward()
                optimizer.step()
                watch.step(loss)
        rules = [finding.rule for finding in watch.report().findings]
        assert {"optimizer-misses-parameters", "unchanged-parameters"} <= set(rules)

    def test_gradients_that_are_never_zeroed_are_a_finding(self):
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
        with diagnostics.watch(model, optimizer) as watch:
            for _ in range(20):
                inputs = torch.randn(8, 6)
                nn.functional.cross_entropy(model(inputs), inputs[:, :3].argmax(1)).backward()
                optimizer.step()
        assert "gradients-not-zeroed" in [finding.rule for finding in watch.report().findings]

    def test_stopping_after_a_step_takes_the_hooks_off(self):
        _, watch = train(True, stop_after=10)
        assert watch.report().title == "watched 10 steps of Network"

    def test_evaluation_losses_are_kept_with_their_step(self):
        _, watch = train(True)
        watch.evaluated(0.5)
        history = watch._probe.history()
        assert (history.evaluation_steps.tolist(), history.evaluation_losses.tolist()) == ([44], [0.5])


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
            'In step 13, the code just before the probe "after the logarithm" in the model was the first to make '
            "NaN or inf from finite input."
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

    def test_changes_no_bit(self):
        bare, _ = train(False)
        watched, watch = train(True, trace_steps=[0, 3, 4, 44])
        assert len(watch.report().traces) == 4
        assert_same_bits(bare, watched)

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
        at = lines.index("step 1, every module in the order in which it ended")
        assert lines[at + 1].split() == ["smallest", "to", "largest", "|x|", "weights", "inputs", "outputs"]
        assert re.fullmatch(r"  first Linear( +\S+ to \S+){3}", lines[at + 2])

    def test_a_fault_of_its_own_costs_the_trace_and_nothing_else(self, monkeypatch):
        def broken(_):
            raise ZeroDivisionError("on purpose")

        monkeypatch.setattr("diagnostics.probes.torch_calls.value_range", broken)
        report, _, _ = train_layered(trace_steps=[1], steps=5)
        assert report.traces == ()
        assert report.faults == ("watching the trace ended: ZeroDivisionError: on purpose",)

    def test_of_a_compiled_model_is_said_not_to_be_covered(self):
        report, _, _ = train_layered(trace_steps=[1], steps=3, compiled=True)
        assert (report.traces, report.faults) == ((), ())
        stages = {stage.name: (stage.status, stage.detail) for stage in report.stages}
        assert stages["trace"] == (
            "not judged",
            "torch.compile has made one piece of the modules: trace the model without it",
        )


class TestBatch:
    def test_is_the_one_that_broke_as_the_model_was_called_with_it(self, tmp_path):
        report, batches, _ = train_layered(broken_at=13)
        batch = report.batch()
        assert (batch.step, batch.size, batch.rows, batch.why_not) == (13, 4, (0, 1, 2, 3), "")
        assert torch.equal(batch.args[0], batches[13])
        assert batch.kwargs == {"broken": True}
        assert batch.fingerprint == int(report.history.batch_fingerprints[13])
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
        assert (batch.args, batch.why_not) == ((), "it was written to after the model had seen it")
        with pytest.raises(diagnostics.InvalidInput) as error:
            batch.save(tmp_path / "batch.pt")
        assert str(error.value) == (
            "The batch of step 13 cannot be saved: it was written to after the model had seen it."
        )

    def test_that_was_too_large_to_be_held_is_said_to_be_gone(self, monkeypatch):
        monkeypatch.setattr("diagnostics.probes.torch_evidence.INPUTS_LIMIT", 10)
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
        assert str(error.value) == (
            "batch() knows of no batch: no loss and no gradient of this run was seen to be NaN or infinite."
        )

    def test_the_report_says_that_it_is_at_hand(self):
        report, _, _ = train_layered(broken_at=13)
        assert "The batch of step 13 is at hand: report.batch().save('batch.pt')." in str(report).splitlines()


class TestRefuses:
    def refused(self, *arguments, **options):
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.watch(*arguments, **options)
        return str(error.value)

    def test_a_model_of_torchscript(self):
        with pytest.warns(DeprecationWarning, match="torch.jit.script"):
            scripted = torch.jit.script(nn.Linear(2, 2))
        assert self.refused(scripted) == (
            "watch() was given a model that torch.jit.script or torch.jit.trace has made, which takes no hooks. "
            "Train the module that it was made from."
        )

    def test_what_is_no_model(self):
        assert self.refused("model") == (
            "watch() was given a str as model. It takes a PyTorch model and its optimizer, or a list of them: "
            "watch(model, optimizer)."
        )

    def test_a_class_instead_of_a_model(self):
        assert self.refused(Network).startswith(
            "watch() was given the class Network, not an object of it as model."
        )

    def test_what_is_no_optimizer(self):
        assert self.refused(Network(), 0.1).startswith("watch() was given a float as optimizer. It takes")

    def test_a_model_without_parameters(self):
        assert self.refused(nn.ReLU()) == (
            "watch() cannot watch this model. ReLU has no parameters: there is nothing that training could change."
        )

    @pytest.mark.parametrize("every", [0, -1, 2.5, True])
    def test_a_rhythm_that_is_none(self, every):
        assert self.refused(Network(), every=every) == (
            f"watch() was given every={every!r}. It takes a number of steps, 1 or more."
        )

    @pytest.mark.parametrize("steps", [3, "3", [-1], [True], [1.5]])
    def test_a_trace_of_no_step(self, steps):
        assert self.refused(Network(), trace_steps=steps) == (
            f"watch() was given trace_steps={steps!r}. It takes numbers of steps, counted from 0: "
            "trace_steps=[1, 3]."
        )

    def test_an_end_before_the_beginning(self):
        assert self.refused(Network(), stop_after=0) == (
            "watch() was given stop_after=0. It takes a number of steps, or None."
        )


def load(path):
    spec = importlib.util.spec_from_file_location(f"watched_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def losses_of(model, loss_fn):
    """Return a list that gets the losses that a program trains on, and its loss function, which fills it."""
    losses = []

    def note(loss):
        if torch.is_grad_enabled():
            losses.append(loss.detach())
        return loss

    if loss_fn is not None:
        return losses, lambda *arguments: note(loss_fn(*arguments))

    def note_output(_model, _inputs, output):
        found = output["loss"] if isinstance(output, dict) else output
        note(found[-1] if isinstance(found, tuple) else found)

    model.register_forward_hook(note_output)
    return losses, None


@pytest.mark.slow
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_healthy_program_is_watched_without_an_error_or_a_warning(path):
    program = load(path)
    model, loader, loss_fn, optimizer = program.build()
    losses, loss_fn = losses_of(model, loss_fn)
    with diagnostics.watch(model, optimizer) as watch:

        def hand_over(*_):
            watch.step(torch.stack(losses).mean())
            losses.clear()

        first = optimizer[0] if isinstance(optimizer, list) else optimizer
        first.register_step_post_hook(hand_over)
        program.train(model, loader, loss_fn, optimizer)
    report = watch.report()
    assert watch._probe.history().loss_known.all()
    assert report.ok, str(report)
    assert report.faults == ()
    assert re.match(r"watched [\d,]{2,} steps of", report.title)

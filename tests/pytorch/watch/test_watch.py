"""`watch` as its user sees it: what it says, what it leaves alone, what it refuses."""

import json
import random
import re

import numpy as np
import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.collectors.pytorch.watch import watcher
from diagnostics.collectors.pytorch.watch.optimizer_steps import OptimizerSteps, PendingSteps
from tests.support import healthy
from tests.support.findings import all_rules_of
from tests.support.healthy import few_of, load

PROGRAMS = [p for p in healthy.PROGRAMS if not p.stem.startswith(("keras_", "trainer_", "script_"))]


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

    def test_even_if_it_traces_steps(self):
        bare, _ = train(False)
        watched, watch = train(True, trace_steps=[0, 3, 4, 44])
        assert len(watch.report().traces) == 4
        assert_same_bits(bare, watched)

    def test_even_if_the_device_decides_what_is_kept(self, monkeypatch):
        plain = watcher.TorchWatcher.__init__
        monkeypatch.setattr(
            watcher.TorchWatcher,
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

        for owner, parts in (
            (watcher.TorchWatcher, ("_forward_begins", "_listen")),
            (OptimizerSteps, ("_before_step", "_after_step")),
            (PendingSteps, ("_read",)),
        ):
            for part in parts:
                monkeypatch.setattr(owner, part, broken)
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
        assert stages["weights"] == ("passed", "kept, to replay a failed step")
        assert json.loads(report.to_json())["title"] == report.title

    def test_a_report_in_between_does_not_end_the_watch(self):
        _, watch = train(True, report_at=10)
        assert watch.report().title == "watched 45 steps of Network"

    def test_the_batch_that_held_a_nan_is_the_one_finding(self):
        _, watch = train(True, broken_at=13)
        report = watch.report()
        assert [(f.rule, f.step, f.severity) for f in report.findings] == [("non-finite-inputs", 13, "error")]
        assert report.findings[0].message.startswith(
            "The batch at step 13 has NaN or infinity in input 0. Affected: 1 of the 16 examples (index 2)."
        )

    def test_without_the_loss_it_says_how_to_hand_it_over(self):
        model = Network()
        with diagnostics.watch(model, torch.optim.SGD(model.parameters(), lr=0.1)) as watch:
            pass
        stages = {stage.name: stage.detail for stage in watch.report().stages}
        assert stages["loss"] == "the loop passed none: call watch.step(loss)"
        assert stages["forward passes"] == "none was seen: pass the model that the loop calls"

    @pytest.mark.parametrize(("loss", "said"), [([0.5], "a list"), ("0.5 or so", "a str")])
    def test_a_loss_that_is_no_number_is_named_and_stops_nothing(self, loss, said):
        model = Network()
        with diagnostics.watch(model, torch.optim.SGD(model.parameters(), lr=0.1)) as watch:
            watch.step(loss)
        stages = {stage.name: stage.detail for stage in watch.report().stages}
        assert stages["loss"] == f"step() was given {said}, which is not a number"

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
        rules = all_rules_of(watch.report())
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
        assert (history.evaluations.steps.tolist(), history.evaluations.losses.tolist()) == ([44], [0.5])


class TestRefuses:
    def refused(self, *arguments, **options):
        with pytest.raises(diagnostics.InvalidInput) as error:
            diagnostics.watch(*arguments, **options)
        return str(error.value)

    def test_a_model_of_torchscript(self):
        with pytest.warns(DeprecationWarning, match="torch.jit.script"):
            scripted = torch.jit.script(nn.Linear(2, 2))
        assert self.refused(scripted) == (
            "watch() was given a model made by torch.jit.script or torch.jit.trace, which takes no hooks. "
            "Train the module that it was made from."
        )

    def test_what_is_no_model(self):
        assert self.refused("model") == (
            "watch() was given a str as model. It takes a PyTorch model and its optimizer, or a list of them: "
            "watch(model, optimizer)."
        )

    def test_a_class_instead_of_a_model(self):
        assert self.refused(Network).startswith(
            "watch() was given the class Network, not an instance of it as model."
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
            f"watch() was given trace_steps={steps!r}. It takes step numbers, counted from 0: trace_steps=[1, 3]."
        )

    def test_an_end_before_the_beginning(self):
        assert self.refused(Network(), stop_after=0) == (
            "watch() was given stop_after=0. It takes a number of steps, or None."
        )


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
@pytest.mark.parametrize("path", few_of(PROGRAMS), ids=lambda path: path.stem)
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
    assert len(watch._probe.history().losses.steps) == watch._probe.history().steps.total_steps
    assert report.ok, str(report)
    assert report.faults == ()
    assert re.match(r"watched [\d,]{2,} steps of", report.title)

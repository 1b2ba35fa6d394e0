"""`watch.report(second_look=...)`: what the answers of the watched model depend on."""

import copy

import pytest
import torch
from torch import nn

import diagnostics


class TwoInputs(nn.Module):
    """Reads its second input, or ignores it."""

    def __init__(self, ignores):
        super().__init__()
        self.one, self.other, self.ignores = nn.Linear(6, 8), nn.Linear(6, 8), ignores
        self.head = nn.Linear(8, 3)

    def forward(self, image, text):
        hidden = self.one(image) + (0 if self.ignores else self.other(text))
        return self.head(torch.relu(hidden))


def trained(model, *shapes, steps=12):
    torch.manual_seed(0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(steps):
            inputs = [torch.randn(16, *shape) for shape in shapes]
            optimizer.zero_grad()
            labels = inputs[0][:, :3].argmax(1)
            loss = nn.functional.cross_entropy(model(*inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss, labels)
    return watch


def mlp(*last):
    return nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3), *last)


def rules(report):
    return {finding.rule for finding in report.findings if finding.severity != "note"}


def test_names_what_only_the_answers_show():
    watch = trained(mlp(nn.Softmax(dim=0)), (6,))
    assert "examples-mixed" not in rules(watch.report())
    report = watch.report(second_look=20)
    assert "examples-mixed" in rules(report)
    assert report.stages[-1].name == "second look"
    assert report.stages[-1].status == "passed"
    assert report.faults == ()


def test_names_an_input_that_no_answer_depends_on():
    assert "unused-input" in rules(trained(TwoInputs(ignores=True), (6,), (6,)).report(second_look=20))
    assert "unused-input" not in rules(trained(TwoInputs(ignores=False), (6,), (6,)).report(second_look=20))


@pytest.mark.parametrize("closed", [False, True])
def test_leaves_model_and_randomness_alone_and_goes_on(closed):
    model = nn.Sequential(nn.Dropout(0.2), *mlp())
    watch = trained(model, (6,)) if closed else diagnostics.watch(model, torch.optim.SGD(model.parameters(), 0.1))
    if not closed:
        nn.functional.cross_entropy(model(torch.randn(16, 6)), torch.arange(16) % 3).backward()
    kept, state, generator = copy.deepcopy(model.state_dict()), watch.report().history, torch.get_rng_state()
    hooks = len(model._forward_hooks), len(model._forward_pre_hooks)
    report = watch.report(second_look=20)
    assert rules(report) == rules(watch.report())
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())
    assert torch.equal(torch.get_rng_state(), generator)
    assert (len(model._forward_hooks), len(model._forward_pre_hooks)) == hooks
    assert report.history.steps.total_steps == state.steps.total_steps
    assert model.training
    watch.close()


def test_says_why_there_is_none():
    model = mlp()
    watch = diagnostics.watch(model, torch.optim.SGD(model.parameters(), 0.1))
    stage = watch.report(second_look=5).stages[-1]
    assert (stage.status, stage.detail) == ("not judged", "no forward pass was recorded")
    watch.close()


@pytest.mark.parametrize("seconds", [0, -1, float("inf"), float("nan"), True, "5"])
def test_refuses_what_are_no_seconds(seconds):
    watch = trained(mlp(), (6,), steps=2)
    with pytest.raises(diagnostics.InvalidInput, match="second_look="):
        watch.report(second_look=seconds)

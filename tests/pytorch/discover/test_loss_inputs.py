"""What a loss of the library was given is known where it is all that the script differentiates."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from diagnostics.facts.loss_call import LossCalls
from diagnostics.run.observer import ScriptObserver

INPUTS = torch.randn(32, 6, generator=torch.Generator().manual_seed(0))
TARGET = torch.randn(32, 4, generator=torch.Generator().manual_seed(1)).softmax(1)


def seen(loss_of):
    run = ScriptObserver()
    try:
        model = nn.Linear(6, 4)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(3):
            optimizer.zero_grad()
            loss_of(model(INPUTS)).backward()
            optimizer.step()
    finally:
        run.close()
    assert not run.faults
    (report,) = run.examined
    calls = [call for fact in report.facts if isinstance(fact, LossCalls) for call in fact.calls]
    whole = [call for call in calls if call.whole]
    return (whole[0] if whole else None), {finding.rule for finding in report.findings}


def test_a_divergence_of_probabilities_is_out_of_range():
    given, found = seen(lambda out: F.kl_div(out.softmax(1), TARGET, reduction="batchmean"))
    assert (given.function, given.made_by, given.prediction.shape) == ("kl_div", "softmax", (32, 4))
    assert given.value < 0
    assert "loss-out-of-range" in found


def test_a_constant_factor_changes_nothing():
    def part(out):
        loss = F.mse_loss(out, TARGET)
        kept.append(loss)
        return loss / 4

    kept = []
    assert seen(part)[0].function == "mse_loss"


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out: F.mse_loss(out, TARGET) - out.softmax(1).square().mean(),
        lambda out: -F.mse_loss(out, TARGET) * out.mean(),
        lambda out: F.gaussian_nll_loss(out, TARGET, torch.full_like(out, 1e-4)),
    ],
    ids=["with a bonus", "times the output", "a density"],
)
def test_of_other_losses_nothing_is_said(loss_of):
    assert seen(loss_of)[0] is None


def test_nor_do_two_of_them_as_the_square_of_a_temperature():
    def squared(out):
        kept.append(F.kl_div((out / 4).softmax(1), TARGET, reduction="batchmean"))
        return kept[-1] * 4 * 4

    kept = []
    given, found = seen(squared)
    assert given.function == "kl_div"
    assert "loss-out-of-range" in found


def test_a_divergence_that_only_the_graph_still_holds_is_heard():
    given, found = seen(lambda out: F.kl_div(out / 4, TARGET, reduction="batchmean") * 4 * 4)
    assert given.function == "kl_div"
    assert "loss-out-of-range" in found


def test_a_loss_that_was_only_printed_hides_none():
    def printed(out):
        F.mse_loss(out, TARGET).item()
        return F.kl_div(out.softmax(1), TARGET, reduction="batchmean")

    assert seen(printed)[0].function == "kl_div"


def test_a_divergence_beside_a_loss_of_labels_is_judged_too():
    def distilled(out):
        divergence = F.kl_div(out / 4, TARGET, reduction="batchmean")
        return 8 * divergence + F.cross_entropy(out, TARGET.argmax(1))

    assert "loss-out-of-range" in seen(distilled)[1]

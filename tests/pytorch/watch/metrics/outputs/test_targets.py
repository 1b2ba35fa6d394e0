"""The targets of a loop are read off the gradient of the output, however the loss was written."""

import math

import pytest
import torch
from torch import nn

import diagnostics
from diagnostics.facts.course import TargetHistory
from diagnostics.facts.inputs import TargetSides
from diagnostics.facts.training import PredictionFacts

INPUTS = torch.randn(256, 5, generator=torch.Generator().manual_seed(0))
NUMBERS = INPUTS[:, :1] * 2 + 1
CLASSES = (INPUTS[:, 0] > 0).long()
LOSSES = {
    "by hand": (lambda out: ((out - NUMBERS) ** 2).mean(), 1, "mean_squared_error"),
    "nn.MSELoss": (lambda out: nn.functional.mse_loss(out, NUMBERS), 1, "mean_squared_error"),
    "cross entropy": (lambda out: nn.functional.cross_entropy(out, CLASSES), 2, "cross_entropy"),
    "gathered": (lambda out: -out.log_softmax(1).gather(1, CLASSES[:, None]).mean(), 2, "cross_entropy"),
    "nll_loss of a softmax": (
        lambda out: nn.functional.nll_loss(out.softmax(1).log(), CLASSES),
        2,
        "cross_entropy",
    ),
    "binary": (
        lambda out: nn.functional.binary_cross_entropy(out.sigmoid()[:, 0], CLASSES.float()),
        1,
        "binary_cross_entropy",
    ),
}


def watched(loss_of, outputs, steps=120, rate=0.0, end=None):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, outputs), end or nn.Identity())
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(steps):
            optimizer.zero_grad()
            loss = loss_of(model(INPUTS))
            loss.backward()
            optimizer.step()
            watch.step(loss)
    return next((fact for fact in watch._report().facts if isinstance(fact, TargetHistory)), None)


@pytest.mark.parametrize("name", LOSSES)
def test_a_plain_loss_is_recognised(name):
    loss_of, outputs, kind = LOSSES[name]
    targets = watched(loss_of, outputs)
    assert (targets.kind, targets.outputs) == (kind, outputs)
    expected = NUMBERS.var(unbiased=False).item() if kind == "mean_squared_error" else 0.6863
    assert targets.constant_losses.mean() == pytest.approx(expected, abs=2e-3)
    assert targets.fit.error < 0.4 * targets.fit.constant_error


def test_labels_that_are_all_0_do_not_drift_by_their_rounding():
    targets = watched(lambda out: nn.functional.binary_cross_entropy_with_logits(out, NUMBERS * 0), 1, rate=1.0)
    assert (targets.kind, targets.only_target) == ("binary_cross_entropy", 0.0)


class ThreeClasses(nn.Module):
    """Scores of three classes at each of four places, with a bias for each class."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(3))

    def forward(self, hidden):
        return hidden.unflatten(1, (4, 3)) + self.bias


TAGS = torch.randint(0, 3, (256, 4), generator=torch.Generator().manual_seed(1))
PADDED = TAGS.masked_fill(TAGS == 2, -100)


@pytest.mark.parametrize(
    ("loss_of", "counted"),
    [
        (lambda out: nn.functional.cross_entropy(out.flatten(0, 1), TAGS.flatten()), TAGS.flatten()),
        (lambda out: nn.functional.cross_entropy(out.transpose(1, 2), TAGS), TAGS.flatten()),
        (lambda out: nn.functional.cross_entropy(out.flatten(0, 1), PADDED.flatten()), PADDED[PADDED >= 0]),
    ],
    ids=["flattened", "classes second", "padded"],
)
def test_classes_of_each_place_of_a_sequence_are_recognised(loss_of, counted):
    targets = watched(loss_of, 12, end=nn.Unflatten(1, (4, 3)))
    shares = torch.bincount(counted).double() / len(counted)
    assert (targets.kind, targets.outputs, targets.fit) == ("cross_entropy", 3, None)
    assert targets.constant_losses[0] == pytest.approx(-torch.special.xlogy(shares, shares).sum().item(), abs=1e-3)


@pytest.mark.parametrize(("tags", "only"), [(TAGS * 0 + 2, 2.0), (TAGS, None)])
def test_the_only_class_of_all_places_is_known(tags, only):
    targets = watched(
        lambda out: nn.functional.cross_entropy(out.flatten(0, 1), tags.flatten()), 12, end=ThreeClasses()
    )
    assert targets.only_target == only


class WithLoss(nn.Module):
    """A model that returns its scores beside its loss, as nanoGPT does."""

    def __init__(self):
        super().__init__()
        self.scores = nn.Linear(5, 2)

    def forward(self, inputs, labels):
        scores = self.scores(inputs)
        return scores, nn.functional.cross_entropy(scores, labels)


def test_scores_beside_the_loss_are_recognised():
    model = WithLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(30):
            optimizer.zero_grad()
            _, loss = model(INPUTS, CLASSES)
            loss.backward()
            optimizer.step()
            watch.step(loss)
    facts = watch._report().facts
    (targets,) = [fact for fact in facts if isinstance(fact, TargetHistory)]
    (answers,) = [fact for fact in facts if isinstance(fact, PredictionFacts)]
    assert (targets.kind, targets.outputs) == ("cross_entropy", 2)
    assert (answers.labels == torch.bincount(CLASSES).numpy()).all()


def test_rows_that_are_kept_for_a_test_do_not_hide_the_targets_of_others():
    trained = torch.arange(256) % 3 > 0
    targets = watched(lambda out: nn.functional.cross_entropy(out[trained], CLASSES[trained]), 2)
    share = CLASSES[trained].float().mean().item()
    entropy = -(share * math.log(share) + (1 - share) * math.log(1 - share))
    assert targets.constant_losses[0] == pytest.approx(entropy, abs=1e-3)


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda out: nn.functional.mse_loss(out, NUMBERS) + out.abs().mean(),
        lambda out: nn.functional.mse_loss(out, NUMBERS[:, 0]),
        lambda out: nn.functional.l1_loss(out, NUMBERS),
        lambda out: -(out.log_softmax(1)[:, 0] * NUMBERS[:, 0]).mean(),
    ],
    ids=["with a second term", "broadcast", "absolute", "policy gradient"],
)
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_any_other_loss_is_left_alone(loss_of):
    assert watched(loss_of, 1) is None


def test_targets_that_move_are_left_alone():
    level = iter(range(1000))
    assert watched(lambda out: nn.functional.mse_loss(out, NUMBERS + next(level)), 1) is None


def test_a_fit_is_tried_also_for_a_run_that_learned():
    fit = watched(LOSSES["nn.MSELoss"][0], 1, steps=200, rate=0.1).fit
    assert fit.error < 0.9 * fit.constant_error


def test_whole_numbers_are_fitted_as_classes_too():
    numbered = watched(lambda out: nn.functional.mse_loss(out, NUMBERS.round()), 1, steps=60).numbered
    assert 4 <= numbered.classes <= 20
    assert numbered.as_good == 0  # they are in order
    assert watched(LOSSES["nn.MSELoss"][0], 1).numbered is None


def sides(evaluated):
    """Train, evaluate once, and return the targets of both sides; `evaluated` gets answers, and calls a loss."""
    torch.manual_seed(0)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    with diagnostics.watch(model, optimizer) as watch:
        for _ in range(40):
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(INPUTS), NUMBERS)
            loss.backward()
            optimizer.step()
            watch.step(loss)
        with torch.no_grad():
            evaluated(model(INPUTS[:64]))
    return next((fact for fact in watch._report().facts if isinstance(fact, TargetSides)), None)


def test_targets_of_an_evaluation_are_those_that_the_loss_gets():
    found = sides(lambda out: nn.functional.l1_loss(out.squeeze(1), 100 * NUMBERS[:64, 0]))
    assert found.evaluation[:, 0] == pytest.approx(100 * NUMBERS[:64, 0].numpy(), rel=1e-5)
    assert found.training.std() == pytest.approx(NUMBERS.std().item(), rel=0.1)
    assert set(found.inputs.training) == {"0"}


def test_answers_that_are_brought_back_to_another_unit_are_not_compared():
    assert sides(lambda out: nn.functional.mse_loss(out * 100, 100 * NUMBERS[:64])) is None
    assert sides(lambda out: ((out - 100 * NUMBERS[:64]) ** 2).mean()) is None

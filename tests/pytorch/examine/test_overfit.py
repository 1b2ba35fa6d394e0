"""`overfit` on PyTorch models: healthy ones learn every count, broken ones stop where the bug says."""

import copy
import random

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, IterableDataset, TensorDataset

import diagnostics
from tests.pytorch.examine.test_untouched import assert_same, frozen_in_time, stepped
from tests.support.findings import all_rules_of
from tests.support.healthy import PROGRAMS, load
from tests.support.marks import quick

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
LOSS = nn.CrossEntropyLoss()


def points(rows=128, classes=4):
    inputs = torch.randn(rows, 16, generator=torch.Generator().manual_seed(0))
    return inputs, inputs[:, :classes].argmax(1)


def loader(inputs, labels, size=16):
    return DataLoader(TensorDataset(inputs, labels), batch_size=size, shuffle=True)


def classifier(last=None, hidden=32):
    torch.manual_seed(0)
    layers = [nn.Linear(16, hidden), nn.ReLU(), nn.Linear(hidden, 4)]
    return nn.Sequential(*layers, *([] if last is None else [last]))


def adam(model, rate=1e-2):
    return torch.optim.Adam(model.parameters(), rate)


class Applied(nn.Module):
    """Applies a function."""

    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, values):
        return self.function(values)


# --- healthy -------------------------------------------------------------------------------------------------

TAKEN = [path for path in PROGRAMS if not path.stem.startswith(("watched_", "script_", "keras_"))]
FEW = {"mlp_classifier", "regression", "triplets"}


@pytest.mark.parametrize(
    "path", quick(TAKEN, *(path for path in TAKEN if path.stem in FEW)), ids=lambda path: path.stem
)
def test_a_healthy_program_is_not_stopped(path):
    result = diagnostics.overfit(*load(path).build(), seconds=600)
    assert result.ok, str(result)
    assert result.report.faults == (), str(result)
    assert result.trials or path.stem == "graph_convolution", str(result)  # a graph is not cut into examples


def test_a_classifier_learns_every_count_with_its_own_optimizer():
    model = classifier()
    result = diagnostics.overfit(model, loader(*points()), LOSS, adam(model))
    assert [(trial.examples, trial.outcome) for trial in result.trials] == [
        (1, "learned"), (2, "learned"), (5, "learned"), (16, "learned")
    ]  # fmt: skip
    assert all(trial.best.theirs and trial.best.optimizer == "Adam" for trial in result.trials)
    assert result.points_to == ()
    assert "Every count was memorised." in str(result)


def test_the_probability_of_the_right_class_rises():
    model = classifier()
    result = diagnostics.overfit(model, loader(*points()), LOSS, adam(model))
    for trial in result.trials:
        answers = trial.best.answers
        assert answers[0].mean() < 0.5 < 0.8 <= answers[-1].mean()
    five = result.trials[2]
    assert five.best.probabilities.shape == (len(five.best.steps_kept), 5, 4)
    assert five.best.probabilities.sum(-1) == pytest.approx(1.0, abs=1e-5)
    assert set(five.targets) == {0.0, 1.0, 2.0, 3.0}


def test_the_batch_holds_every_label_of_data_that_is_sorted():
    inputs, labels = points()
    order = labels.argsort()
    rows = DataLoader(TensorDataset(inputs[order], labels[order]), batch_size=16)
    result = diagnostics.overfit(classifier(), rows, LOSS)
    last = result.trials[-1]
    assert (last.examples, last.distinct_labels, last.missing_labels) == (16, 4, 0)
    assert "a batch of 16 examples with every label" in str(result)


def test_batches_of_one_are_joined():
    result = diagnostics.overfit(classifier(), loader(*points(), size=1), LOSS)
    assert [trial.examples for trial in result.trials] == [1, 2, 5, 8]


def test_every_run_is_the_same_when_it_is_made_again():
    model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.5), nn.ReLU(), nn.Linear(32, 4))
    results = [diagnostics.overfit(model, loader(*points()), LOSS, adam(model)) for _ in range(2)]
    one, other = ([trial["runs"] for trial in result.history] for result in results)
    assert one == other


# --- broken --------------------------------------------------------------------------------------------------


def answers_divided_away():
    return classifier(Applied(lambda logits: logits / 1e6)), loader(*points()), LOSS


def answers_cut_off_at_zero():
    model = classifier(nn.ReLU())
    with torch.no_grad():
        model[2].bias -= 100.0
    return model, loader(*points()), LOSS


def rounded_states():
    model = classifier()
    model[1] = Applied(lambda states: (states > 1e3).float() + 1e-5 * states)
    return model, loader(*points()), LOSS


def answers_averaged_over_the_batch():
    model = classifier(Applied(lambda logits: logits.mean(0, keepdim=True).expand_as(logits) + 1e-4 * logits))
    return model, loader(*points()), LOSS


def labels_that_contradict_each_other():
    inputs = torch.randn(1, 16, generator=torch.Generator().manual_seed(0)).repeat(64, 1)
    inputs[32:] *= -1
    return classifier(), loader(inputs, torch.arange(64) % 4), LOSS


def no_activation_between_layers():
    places = torch.tensor([0, 15, 2, 13, 4, *(n for n in range(16) if n not in (0, 15, 2, 13, 4))])
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 256), nn.Linear(256, 1))  # a straight line, and every other one is a 1
    return model, [(places[:, None] / 15, (places % 2.0)[:, None])], nn.BCEWithLogitsLoss()


STOPS = {
    answers_divided_away: (1, "Even a single example"),
    answers_cut_off_at_zero: (1, "Even a single example"),
    rounded_states: (5, "inputs cut off or rounded"),
    answers_averaged_over_the_batch: (2, "One constant prediction"),
    labels_that_contradict_each_other: (5, "labels contradict each other"),
    no_activation_between_layers: (16, "the capacity of the model"),
}


@pytest.mark.parametrize("build", STOPS, ids=lambda build: build.__name__)
def test_a_broken_program_stops_where_its_bug_says(build):
    result = diagnostics.overfit(*build(), seconds=600)  # however busy the machine is
    count, words = STOPS[build]
    assert result.stops_at == count, str(result)
    assert words in result.points_to[0]
    assert result.report.faults == ()
    assert not result.ok


def all_is_frozen():
    return classifier().requires_grad_(False), loader(*points()), LOSS


def an_optimizer_of_another_model():
    return classifier(), loader(*points()), LOSS, adam(classifier())


def a_label_too_many():
    return classifier(), loader(*points(classes=5)), LOSS


def steps_that_are_far_too_large():
    model = classifier()
    return model, loader(*points()), LOSS, torch.optim.SGD(model.parameters(), 300.0)


NAMED = {
    all_is_frozen: "no-gradient",
    an_optimizer_of_another_model: "optimizer-misses-parameters",
    a_label_too_many: "labels-out-of-range",
    steps_that_are_far_too_large: "learning-rate-too-high",
}


@pytest.mark.parametrize("build", NAMED, ids=lambda build: build.__name__)
def test_a_rule_that_knows_the_bug_names_it(build):
    result = diagnostics.overfit(*build(), seconds=600)  # however busy the machine is
    assert NAMED[build] in all_rules_of(result.report), str(result)
    assert not result.ok
    assert NAMED[build] in str(result)


@pytest.mark.parametrize(
    ("rate", "words"), [(1e-9, "That is slow"), (0.0, "changed no weight"), (300.0, "Try a smaller learning rate")]
)
def test_a_rate_that_gets_nowhere_is_named_beside_one_that_learns(rate, words):
    model = classifier()
    result = diagnostics.overfit(model, loader(*points()), LOSS, torch.optim.SGD(model.parameters(), rate))
    assert result.trials[0].outcome == "learned"
    assert words in result.points_to[0]


# --- limits --------------------------------------------------------------------------------------------------


class TestUntouched:
    def test_model_optimizer_and_random_states_stay_as_they_are(self):
        from tests.pytorch.examine.test_untouched import Network, rows

        random.seed(3), np.random.seed(3), torch.manual_seed(3)
        model = Network()
        optimizer = torch.optim.AdamW(model.parameters())
        stepped(model, optimizer)
        own = torch.Generator().manual_seed(11)
        data = DataLoader(TensorDataset(*rows()), batch_size=8, shuffle=True, generator=own)
        before = frozen_in_time(model, optimizer, own)
        result = diagnostics.overfit(model, data, LOSS, optimizer)
        assert len(result.trials) == 4, str(result)
        assert_same(before, frozen_in_time(model, optimizer, own))

    def test_the_users_batches_are_not_used_up(self):
        batches = [points(16) for _ in range(3)]
        before = copy.deepcopy(batches)
        assert diagnostics.overfit(classifier(), batches, LOSS).ok
        assert_same({"batches": before}, {"batches": batches})


class TestLimits:
    def test_the_time_is_kept_and_told(self):
        class Slow(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(16, 4)

            def forward(self, inputs):
                torch.ones(400, 400) @ torch.ones(400, 400)
                return self.layer(inputs)

        result = diagnostics.overfit(Slow(), loader(*points()), LOSS, seconds=0.05)
        assert sum(trial.seconds for trial in result.trials) < 1.0
        assert result.stops_at is None
        assert "s of the 0.05 s given" in str(result)

    def test_batch_norm_that_refuses_one_example_does_not_stop_the_others(self):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
        result = diagnostics.overfit(model, loader(*points()), LOSS, adam(model))
        assert result.trials[0].outcome == "not judged"
        assert "Expected more than 1 value per channel" in result.trials[0].reason
        assert [trial.outcome for trial in result.trials[1:]] == ["learned"] * 3

    def test_a_loss_that_is_not_known_is_shown_and_not_judged(self):
        def loss_fn(prediction, target):
            return LOSS(prediction, target) ** 1.5 + 1.0

        result = diagnostics.overfit(classifier(), loader(*points()), loss_fn)
        assert {trial.outcome for trial in result.trials} == {"not judged"}
        assert "how low this loss can get is not known" in result.trials[0].reason
        assert result.ok

    def test_a_model_that_cannot_be_copied_is_told(self):
        class Uncopied(nn.Linear):
            def __deepcopy__(self, memo):
                raise TypeError("cannot pickle a handle")

        result = diagnostics.overfit(Uncopied(16, 4), loader(*points()), LOSS)
        assert result.trials == ()
        assert "the model cannot be copied (TypeError: cannot pickle a handle)" in str(result)

    def test_a_batch_that_cannot_be_cut_is_told(self):
        class Graph(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(16, 4)

            def forward(self, inputs):
                return self.layer(inputs)[:8]

        inputs, labels = points(16)
        result = diagnostics.overfit(Graph(), [(inputs, labels[:8])], LOSS)
        assert "single examples cannot be cut out of a batch" in str(result)

    def test_an_iterable_of_unknown_length_is_read(self):
        class Stream(IterableDataset):
            def __iter__(self):
                yield from zip(*points(64), strict=True)

        assert diagnostics.overfit(classifier(), DataLoader(Stream(), batch_size=16), LOSS).ok

    def test_a_generator_is_refused_in_words_and_not_used_up(self):
        generator = iter([points(16)])
        result = diagnostics.overfit(classifier(), generator, LOSS)
        assert "reading from it would take that away from training" in result.report.stages[1].detail
        assert next(generator)

    def test_no_data_is_told(self):
        result = diagnostics.overfit(classifier(), [], LOSS)
        assert "The data yields no batch: it is empty." in str(result)

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            ((3,), r"overfit\(\) was given an int. It takes a Hugging Face Trainer"),
            ((nn.Linear(2, 2),), r"overfit\(\) was given the model Linear and no data"),
            ((nn.Linear(2, 2), torch.zeros(2)), "not a series of batches"),
        ],
    )
    def test_other_arguments_are_refused_in_words(self, arguments, words):
        with pytest.raises(diagnostics.InvalidInput, match=words):
            diagnostics.overfit(*arguments)

    @pytest.mark.parametrize("seconds", [0, -1.0, "60", True, float("nan")])
    def test_a_budget_that_is_none_is_refused_in_words(self, seconds):
        with pytest.raises(diagnostics.InvalidInput, match="expected a number above 0"):
            diagnostics.overfit(classifier(), loader(*points()), LOSS, seconds=seconds)

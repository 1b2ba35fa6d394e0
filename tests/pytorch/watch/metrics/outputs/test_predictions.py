"""Labels that no loop hands over, read off the gradient; answers; modes; graphs that live on."""

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, mse_loss, nll_loss

import diagnostics
from diagnostics.collectors.pytorch.discover.batch_source import latest_batch
from diagnostics.collectors.pytorch.watch.metrics.outputs import predictions
from diagnostics.facts.layers import TrainModeFacts
from diagnostics.facts.training import GraphFacts, PredictionFacts
from tests.pytorch.watched import batch, mlp, run


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


def answers(watch):
    return next((facts for facts in watch.course() if isinstance(facts, PredictionFacts)), None)


def labels_of(steps, classes=3):
    return [np.bincount(batch(int(step))[1].numpy(), minlength=classes).tolist() for step in steps]


def trained(model, loss_fn, steps=12, rate=0.05, target=batch, **handed):
    """Train a model with any loss on (output, inputs, labels); return what was seen of its answers."""
    optimizer = torch.optim.SGD(model.parameters(), lr=rate)
    with diagnostics.watch(model, optimizer, every=4) as watch:
        for step in range(steps):
            inputs, labels = target(step)
            optimizer.zero_grad()
            loss = loss_fn(model(inputs), labels)
            loss.backward()
            optimizer.step()
            watch.step(loss, **dict.fromkeys(handed, labels))
    assert watch.report().faults == ()
    return answers(watch._probe)


class TestLabelsFromTheGradient:
    @pytest.mark.parametrize("deferred", [False, True])
    def test_are_those_of_the_batch(self, deferred):
        facts = answers(run(mlp(), 12, every=4, deferred=deferred))
        assert facts.steps.tolist() == [0, 1, 2, 4, 8]
        assert facts.labels.tolist() == labels_of([0, 1, 2, 4, 8])
        assert facts.softmax_loss
        assert facts.plain_loss
        assert facts.answers.sum(axis=1).tolist() == [16] * 5

    def test_come_with_the_loss_and_the_answers_that_were_right(self):
        seen = []

        def loss_of(output, labels):
            loss = cross_entropy(output, labels)
            seen.append((loss.item(), int((output.argmax(1) == labels).sum())))
            return loss

        facts = trained(mlp(), loss_of)
        assert facts.cross_entropies.tolist() == pytest.approx([seen[step][0] for step in facts.steps], rel=1e-5)
        assert facts.right.tolist() == [seen[step][1] for step in facts.steps]

    @pytest.mark.parametrize(
        "loss_fn",
        [
            lambda output, labels: 1024 * cross_entropy(output, labels) / 8,
            lambda output, labels: cross_entropy(output, labels, reduction="sum"),
            lambda output, labels: nll_loss(output.log_softmax(1), labels),
            lambda output, labels: -output.softmax(1)[torch.arange(16), labels].log().mean() + 0.3,
        ],
        ids=["scaled", "summed", "in two parts", "by hand"],
    )
    def test_however_cross_entropy_is_written(self, loss_fn):
        facts = trained(mlp(), loss_fn, rate=1e-4)
        assert facts.labels.tolist() == labels_of(facts.steps)
        assert facts.plain_loss

    def test_under_autocast_to_half_precision(self):
        class Half(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = mlp()

            def forward(self, inputs):
                with torch.autocast("cpu", dtype=torch.bfloat16):
                    return self.inner(inputs)

        facts = trained(Half(), lambda output, labels: cross_entropy(output.float(), labels))
        assert facts.labels.tolist() == labels_of(facts.steps)
        assert facts.plain_loss

    @pytest.mark.parametrize("outputs", [1, 2])
    def test_of_two_classes(self, outputs):
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, outputs))

        def loss_fn(output, labels):
            right = labels == 1
            if outputs == 1:
                return binary_cross_entropy_with_logits(output[:, 0], right.float())
            return cross_entropy(output, right.long())

        facts = trained(model, loss_fn)
        assert facts.labels.tolist() == [[16 - ones, ones] for _, ones, _ in labels_of(facts.steps)]
        assert facts.plain_loss

    def test_with_class_weights_the_loss_is_not_plain(self):
        facts = trained(mlp(), lambda o, y: cross_entropy(o, y, weight=torch.tensor([1.0, 5.0, 2.0])))
        assert facts.labels.tolist() == labels_of(facts.steps)
        assert facts.softmax_loss
        assert not facts.plain_loss

    def test_with_label_smoothing_there_are_none_unless_the_loop_hands_them_over(self):
        def smooth(output, labels):
            return cross_entropy(output, labels, label_smoothing=0.1)

        facts = trained(mlp(), smooth)
        assert (facts.labels == 0).all()
        assert np.isnan(facts.cross_entropies).all()
        assert facts.softmax_loss
        assert not facts.plain_loss
        assert trained(mlp(), smooth, labels=True).labels.tolist() == labels_of([0, 1, 2, 4, 8])

    @pytest.mark.parametrize("outputs", [1, 2, 3])
    def test_a_regression_has_none(self, outputs):
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, outputs))
        facts = trained(model, lambda o, y: mse_loss(o, y[:, None].expand_as(o).float()))
        assert (facts.labels == 0).all()
        assert not facts.softmax_loss
        assert not facts.plain_loss

    def test_an_embedding_has_none(self):
        def pull(output, labels):
            unit = nn.functional.normalize(output, dim=1)
            return cross_entropy(unit @ unit.T / 0.1, labels)

        facts = trained(mlp(), pull)
        assert (facts.labels == 0).all()
        assert not facts.softmax_loss

    def test_a_sequence_of_scores_is_left_alone(self):
        model = nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 6), nn.Unflatten(1, (2, 3)))
        assert trained(model, lambda o, y: cross_entropy(o.flatten(0, 1), y.repeat_interleave(2))) is None


class TestEvaluations:
    def test_count_the_answers_of_all_their_passes(self):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        expected = []
        with diagnostics.watch(model, optimizer) as watch:
            for step in range(30):
                inputs, labels = batch(step)
                cross_entropy(model(inputs), labels).backward()
                optimizer.step()
                optimizer.zero_grad()
                if step % 10 == 9:
                    with torch.no_grad():
                        outputs = torch.cat([model(batch(100 + part)[0]) for part in range(5)])
                    expected.append(np.bincount(outputs.argmax(1), minlength=3).tolist())
        facts = answers(watch._probe)
        assert facts.evaluation_steps.tolist() == [10, 20, 30]
        assert facts.evaluation_answers.tolist() == expected
        assert (facts.evaluation_labels == 0).all()
        assert watch._probe.history().no_grad.rounds == 3

    def test_a_long_one_is_thinned_to_its_end(self):
        model = mlp()
        watch = run(model, 3).__class__(model, [torch.optim.SGD(model.parameters(), lr=0.1)], 4)
        cross_entropy(model(batch(0)[0]), batch(0)[1]).backward()
        with torch.no_grad():
            for part in range(5000):
                model(batch(part, rows=1)[0])
        assert len(watch.probes[predictions.Predictions]._evaluated) < 8 * predictions.PASSES
        watch.close()
        assert watch.faults == {}

    def test_a_model_that_is_called_with_its_labels_gives_them_away(self):
        class Labelled(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = mlp()

            def forward(self, inputs, labels=None):
                logits = self.inner(inputs)
                return {"loss": cross_entropy(logits, labels, label_smoothing=0.1), "logits": logits}

        model = Labelled()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with diagnostics.watch(model, optimizer, every=4) as watch:
            for step in range(6):
                inputs, labels = batch(step)
                model(inputs, labels=labels)["loss"].backward()
                optimizer.step()
                optimizer.zero_grad()
            with torch.no_grad():
                model(batch(7)[0], labels=batch(7)[1])
        facts = answers(watch._probe)
        assert facts.labels.tolist() == labels_of([0, 1, 2, 4])
        assert facts.evaluation_labels.tolist() == labels_of([7])


class TestLabelsOfEvaluations:
    def evaluated(self, loss, model=None, target=lambda labels: labels):
        code = cross_entropy.__code__
        model = model or mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with diagnostics.watch(model, optimizer, every=4) as watch:
            for step in range(6):
                inputs, labels = batch(step)
                optimizer.zero_grad()
                loss(model(inputs), target(labels)).backward()
                assert cross_entropy.__code__ is code
                optimizer.step()
                with torch.no_grad():
                    loss(model(batch(50 + step)[0]), target(batch(50 + step)[1]))
        assert watch.report().faults == ()
        assert cross_entropy.__code__ is code
        return answers(watch._probe)

    def test_are_those_that_the_loss_gets(self):
        facts = self.evaluated(nn.CrossEntropyLoss())
        assert facts.evaluation_steps.tolist() == [1, 2, 3, 4, 5, 6]
        assert facts.evaluation_labels.tolist() == labels_of(range(50, 56))
        assert facts.last_confusion.sum(axis=1).tolist() == labels_of([55])[0]
        assert facts.last_confusion.sum(axis=0).tolist() == facts.evaluation_answers[-1].tolist()
        assert facts.evaluation_right[-1] == np.trace(facts.last_confusion)

    def test_are_those_of_a_binary_loss_of_a_view(self):
        model = nn.Sequential(nn.Linear(8, 1))
        facts = self.evaluated(
            lambda output, labels: binary_cross_entropy_with_logits(output.squeeze(1), labels),
            model,
            lambda labels: (labels > 0).float(),
        )
        ones = [int((batch(50 + step)[1] > 0).sum()) for step in range(6)]
        assert facts.evaluation_labels[:, 1].tolist() == ones

    def test_are_not_those_of_another_prediction(self):
        other = torch.zeros(16, 3)
        facts = self.evaluated(
            lambda output, labels: cross_entropy(output if output.requires_grad else other, labels)
        )
        assert (facts.evaluation_labels == 0).all()
        assert facts.last_confusion is None

    @pytest.mark.parametrize("trained_on", ["them", "others"])
    def test_stand_in_the_batch_where_those_of_training_do(self, trained_on):
        model = mlp()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with diagnostics.watch(model, optimizer, every=4) as watch:
            for step in range(6):
                for number in (step, 50 + step):  # a batch of training, and one of evaluation
                    inputs, labels = batch(number)
                    latest_batch.gives((inputs, labels), None)
                    with torch.set_grad_enabled(number < 50):
                        output = model(inputs)
                    if number < 50:
                        optimizer.zero_grad()
                        cross_entropy(output, labels if trained_on == "them" else (labels + 1) % 3).backward()
                        optimizer.step()
        found = answers(watch._probe).evaluation_labels
        assert found.tolist() == (labels_of(range(50, 56)) if trained_on == "them" else [[0] * 3] * 6)


def test_passes_of_one_evaluation_that_differ_have_a_spread():
    one = predictions._Evaluation(np.zeros(2, np.int64), np.array([200, 200]), 200, 4, 2 * 100**2 / 100)
    assert one.spread == pytest.approx((400 - 3) / 6**0.5)
    one.squares = 4 * 50**2 / 100
    assert one.spread < 0


class Normed(nn.Module):
    def __init__(self):
        super().__init__()
        self.frozen = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8)).requires_grad_(False)
        self.body = nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.5))
        self.idle = nn.Dropout(0.0)
        self.head = nn.Linear(16, 3)

    def forward(self, inputs):
        return self.head(self.idle(self.body(self.frozen(inputs))))


class TestModes:
    def modes(self, change=None):
        watch = run(Normed(), 12, every=4, change=change)
        return next(facts for facts in watch.course() if isinstance(facts, TrainModeFacts))

    def test_of_the_layers_that_learn_and_mind(self):
        facts = self.modes()
        assert facts.layers == ("body.1", "body.3")
        assert facts.keeps_statistics == (True, False)
        assert facts.steps.tolist() == list(range(9))
        assert facts.in_training.tolist() == [2] * 9

    def test_change_with_the_mode(self):
        facts = self.modes(lambda step, model, _: model.eval() if step >= 4 else None)
        assert facts.in_training.tolist() == [2] * 4 + [0] * 5

    def test_of_an_attack_in_evaluation_mode_and_a_step_in_training_mode_are_those_of_the_step(self):
        model = Normed()
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with diagnostics.watch(model, optimizer, every=4) as watch:
            for step in range(6):
                for learns in (False, True):
                    optimizer.zero_grad()
                    inputs, labels = batch(step)
                    loss = cross_entropy(model.train(learns)(inputs.requires_grad_()), labels)
                    loss.backward()
                optimizer.step()
        facts = next(f for f in watch._probe.course() if isinstance(f, TrainModeFacts))
        assert facts.in_training.tolist() == [2] * 6


class TestGraphs:
    def graphs(self, keep):
        model, kept = mlp(), []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
        with diagnostics.watch(model, optimizer, every=4) as watch:
            for step in range(12):
                inputs, labels = batch(step)
                loss = cross_entropy(model(inputs), labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                kept.append(keep(loss))
                watch.step(loss)
            del loss
        return next(f for f in watch._probe.course() if isinstance(f, GraphFacts)), kept

    def test_are_dead_after_a_step(self):
        facts, _ = self.graphs(torch.Tensor.item)
        assert facts.steps.tolist() == [0, 1, 2, 4, 8]
        assert not facts.alive.any()

    def test_are_dead_where_losses_are_kept_without_them(self):
        assert not self.graphs(torch.Tensor.detach)[0].alive.any()

    def test_live_as_long_as_a_loss_is_kept(self):
        facts, kept = self.graphs(lambda loss: loss)
        assert facts.alive.all()
        kept.clear()

"""`train_on_batch`, and models that make their weights in the first step: examined as soon as that is possible."""

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.programs import keras, layers

pytestmark = pytest.mark.filterwarnings("ignore")
LABELS = np.arange(96) % 3
X = (2 * np.eye(3)[LABELS] + 0.3 * np.random.default_rng(0).normal(size=(96, 3))).astype("float32")


class Tower(keras.Model):
    """It cannot be built a second time: its arguments cannot be written down."""

    def __init__(self, head):
        super().__init__()
        self.hidden, self.head = layers.Dense(16, activation="relu"), head

    def call(self, inputs):
        return self.head(self.hidden(inputs))


def made(kind, activation="softmax"):
    keras.utils.set_random_seed(0)
    head = layers.Dense(3, activation=activation)
    model = Tower(head) if kind == "subclassed" else keras.Sequential([layers.Dense(16, "relu"), head])
    if kind == "built":
        model.build((None, 3))
    model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy")
    return model


def by_batch(model, scale=1.0):
    return [float(model.train_on_batch(scale * X[i : i + 32], LABELS[i : i + 32])) for i in (0, 32, 64)]


def by_fit(model, scale=1.0):
    return model.fit(scale * X, LABELS, batch_size=32, epochs=2, verbose=0).history["loss"]


def observed(train, *arguments, **options):
    looking = ScriptObserver()
    try:
        result = train(*arguments, **options)
    finally:
        looking.close()
    assert looking.faults == []
    return result, looking


@pytest.mark.parametrize("kind", ["built", "unbuilt", "subclassed"])
@pytest.mark.parametrize("train", [by_batch, by_fit])
def test_healthy_model_is_examined_once_and_learns_the_same(train, kind):
    alone = train(made(kind))
    result, looking = observed(train, made(kind))
    assert result == alone
    assert len(looking.trainings) == 1
    (report,) = looking.examined
    assert report.ok, str(report)
    assert {stage.name: stage.status for stage in report.stages}["forward and loss"] == "passed"


@pytest.mark.parametrize("kind", ["built", "unbuilt", "subclassed"])
@pytest.mark.parametrize("train", [by_batch, by_fit])
def test_unscaled_inputs_are_found(train, kind):
    _, looking = observed(train, made(kind), scale=3000.0)
    (report,) = looking.examined
    assert "unscaled-inputs" in {finding.rule for finding in report.findings}


def test_batch_that_only_makes_the_weights_is_passed_over():
    model = made("built")
    _, looking = observed(lambda: (model.train_on_batch(X[:8] * 0, LABELS[:8]), by_batch(model)))
    (report,) = looking.examined
    assert report.ok, str(report)


def test_model_that_was_fitted_is_not_examined_again():
    model = made("built")
    _, looking = observed(lambda: (by_fit(model), by_batch(model)))
    assert len(looking.examined) == 1


def test_model_that_is_fitted_again_and_again_is_watched_a_few_times():
    model = made("built")
    _, looking = observed(lambda: [model.fit(X, LABELS, batch_size=32, verbose=0) for _ in range(20)])
    assert len(looking.examined) == 1
    assert [report.title for report in looking.watched()] == ["watched 3 steps of Sequential"] * 4


class TestCourse:
    """What is said of the run, whose batches are seen one by one."""

    rng = np.random.default_rng(1)
    rows = rng.normal(size=(400, 12)).astype("float32")
    wanted = (rows[:, :4]).argmax(axis=1)

    def course(self, draw, steps=240, **options):
        keras.utils.set_random_seed(0)
        model = keras.Sequential([keras.Input((12,)), layers.Dense(16, "relu"), layers.Dense(4, "softmax")])
        model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy")
        rng = np.random.default_rng(2)
        _, looking = observed(lambda: [model.train_on_batch(*draw(rng), **options) for _ in range(steps)])
        (report,) = looking.watched()
        return {finding.rule: finding for finding in report.findings}

    def test_inputs_and_targets_that_are_drawn_apart_are_named(self):
        rows, wanted = self.rows, self.wanted
        found = self.course(lambda rng: (rows[rng.integers(0, 400, 32)], wanted[rng.integers(0, 400, 32)]))
        assert "order = rng.permutation(n)" in found["labels-unrelated"].fix

    def test_rows_drawn_with_their_targets_are_not(self):
        def draw(rng):
            chosen = rng.integers(0, 400, 32)
            return self.rows[chosen], self.wanted[chosen]

        assert self.course(draw) == {}

    @pytest.mark.parametrize("mirrors_boxes", [False, True])
    def test_images_that_are_mirrored_without_their_boxes_are_named(self, mirrors_boxes):
        places = np.arange(16)
        keras.utils.set_random_seed(0)
        image = keras.Input((16, 16, 1))
        flat = layers.Flatten()(image)
        model = keras.Model(image, {"box": layers.Dense(4)(flat), "kind": layers.Dense(1)(flat)})
        model.compile("adam", {"box": lambda y, p: keras.ops.mean(abs(y - p), axis=-1), "kind": "mse"})

        def train():
            for _ in range(8):
                centre, mirror = self.rng.uniform(4, 12, (12, 2)), self.rng.random(12) < 0.5
                inside = np.abs(places + 0.5 - centre[..., None]) < 3
                images = (inside[:, 1, :, None] & inside[:, 0, None]) + self.rng.normal(0, 0.1, (12, 16, 16))
                images[mirror] = images[mirror][:, :, ::-1]
                if mirrors_boxes:
                    centre[mirror, 0] = 16 - centre[mirror, 0]
                boxes = np.concatenate([centre, np.full((12, 2), 6)], axis=1) / 16
                model.train_on_batch(images[..., None], {"box": boxes, "kind": np.ones((12, 1))})

        _, looking = observed(train)
        found = {finding.rule for report in looking.watched() for finding in report.findings}
        assert ("labels-unrelated" in found) is not mirrors_boxes

    def test_a_run_that_learns_nothing_is_told(self):
        def draw(rng):
            chosen = rng.integers(0, 400, 32)
            return rng.normal(size=(32, 12)), self.wanted[chosen]

        assert self.course(draw)["not-learning"].severity == "note"

    def test_weights_of_a_policy_gradient_make_it_another_loss(self):
        rows, wanted = self.rows, self.wanted
        pair = lambda rng: (rows[rng.integers(0, 400, 32)], wanted[rng.integers(0, 400, 32)])  # noqa: E731
        assert self.course(pair, sample_weight=np.ones(32)) == {}

"""Rows that a `fit` draws, where `diagnose run` cannot read its data before."""

import warnings

import numpy as np
import pytest

from diagnostics.collectors.keras.examine.kept_outputs import keep_outputs
from diagnostics.collectors.keras.watch.sampled_rows import BATCHES, ROWS, SampledRows
from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.filterwarnings("ignore:.*provided as a generator")
X = RNG.normal(size=(2000, 5)).astype("float32")
Y = X @ RNG.normal(size=(5, 1)).astype("float32")


def batches(inputs, targets, size=20):
    while True:
        rows = np.random.default_rng(1).permutation(len(inputs))
        for start in range(0, len(rows) - size, size):
            yield inputs[rows[start : start + size]], targets[rows[start : start + size]]


def found(data, epochs=4, optimizer="adam", **options):
    """Return the findings about a `fit`, by rule."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((5,)), layers.Dense(8, activation="relu"), layers.Dense(1)])
    model.compile(optimizer, "mse")
    run = ScriptObserver(on_examined=lambda _: None)
    try:
        model.fit(data, epochs=epochs, verbose=0, **options)
    finally:
        run.close()
    assert run.faults == []
    (report,) = run.watched()
    return {finding.rule: finding.severity for finding in report.findings}


def test_a_generator_whose_targets_are_among_its_inputs_is_named():
    assert found(batches(X, X[:, 3:4]), steps_per_epoch=50)["labels-in-inputs"] == "warning"


def test_a_generator_that_teaches_nothing_is_named():
    tiny = batches(0.002 * X[:400], Y[:400])
    assert found(tiny, steps_per_epoch=50, optimizer=keras.optimizers.SGD(0.02))["not-learning"] == "warning"


def test_a_generator_that_is_learned_is_not():
    assert found(batches(X, Y), steps_per_epoch=50) == {}


class TestSampledRows:
    def taken(self, parts):
        drawn = SampledRows()
        for part in parts:
            drawn.take(part)
        return drawn.rows("mean_squared_error", None)

    def test_keeps_some_of_the_whole_run(self):
        source = batches(X, np.zeros((len(X), 1)))
        numbered = (
            (x, np.full(len(x), number % 2)) for number, (x, _) in enumerate(next(source) for _ in range(999))
        )
        kept = self.taken(numbered)
        assert len(kept.inputs) == len(kept.targets) <= BATCHES * ROWS
        assert len(kept.inputs) > BATCHES * ROWS / 4

    @pytest.mark.parametrize(
        "batch",
        [(X[:20],), (X[:20], Y[:20], np.ones(20)), ((X[:20], X[:20]), Y[:20]), (X[:20], {"a": Y[:20]})],
    )
    def test_keeps_nothing_where_inputs_or_targets_are_not_one_array(self, batch):
        assert self.taken([batch] * 20) is None

    def test_keeps_nothing_of_texts_of_several_lengths(self):
        assert self.taken([(RNG.integers(0, 9, (20, n)), Y[:20]) for n in (7, 8, 9)]) is None

    def test_keeps_nothing_where_the_targets_drift(self):
        assert self.taken([(X[:20], Y[:20] + number) for number in range(40)]) is None


class TestSeveralTargets:
    """The rows of a model with two outputs, one of which is a class."""

    def kept(self, targets, **options):
        inputs = keras.Input((5,))
        outputs = {"price": layers.Dense(1)(inputs), "style": layers.Dense(3, activation="softmax")(inputs)}
        model, drawn = keras.Model(inputs, outputs), SampledRows()
        model.compile("adam", {"price": "mse", "style": "sparse_categorical_crossentropy"}, **options)
        for number in range(20):
            drawn.take((X[20 * number : 20 * number + 20], targets(number)))
        return keep_outputs(model, drawn)

    def targets(self, number=0):
        rows = slice(20 * number, 20 * number + 20)
        return {"price": 1000 * Y[rows], "style": X[rows, :3].argmax(1)}

    def test_are_kept_output_by_output(self):
        kept = self.kept(self.targets, loss_weights={"price": 0.5})
        assert len(kept.inputs[0]) == 20 * ROWS
        wanted = {name: (one.kind, one.weight, one.targets.shape) for name, one in kept.wanted.items()}
        assert wanted["price"] == ("mean_squared_error", 0.5, (20 * ROWS, 1))
        assert wanted["style"] == ("cross_entropy", 1.0, (20 * ROWS, 3))
        pairs = zip(kept.inputs[0], kept.wanted["style"].targets, strict=True)
        assert all(x[:3].argmax() == style.argmax() for x, style in pairs)

    def test_are_dropped_where_one_of_them_drifts(self):
        assert self.kept(lambda number: {**self.targets(number), "price": 1000 * Y[:20] + 500 * number}) is None

    def test_are_dropped_where_an_output_counts_for_nothing(self):
        assert self.kept(self.targets, loss_weights={"price": 0.0}) is None


@pytest.mark.parametrize("size", [1, 4, 40])
def test_small_batches_are_halved_by_their_rows(size):
    rng, drawn = np.random.default_rng(0), SampledRows()
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # NumPy's of an empty half would stand in the script's output
        for _ in range(200):
            rows = rng.random((size, 8, 1)).astype("float32")
            drawn.take((rows, rows[:, 0]))
        kept = drawn.rows("mean_squared_error", None)
    assert kept.inputs.shape[1:] == (8, 1)


def test_a_drift_in_small_batches_is_seen():
    rng, drawn = np.random.default_rng(0), SampledRows()
    for step in range(64):
        drawn.take((rng.random((4, 8)), rng.random((4, 1)) + 10 * (step >= 32)))
    assert drawn.rows("mean_squared_error", None) is None

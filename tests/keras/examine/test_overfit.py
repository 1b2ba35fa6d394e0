"""`overfit` on compiled Keras models: healthy ones learn, broken ones stop where the bug says."""

import numpy as np
import pytest

import diagnostics
from tests.keras.examine.test_untouched import assert_equal, state_of
from tests.keras.programs import FEATURES, X, Y, from_logits, keras, layers, mlp, shuffled, tf
from tests.support.findings import all_rules_of
from tests.support.healthy import PROGRAMS, load
from tests.support.marks import quick

TAKEN = [path for path in PROGRAMS if path.stem.startswith("keras_")]
FEW = {"keras_softmax"}


@pytest.mark.parametrize(
    "path", quick(TAKEN, *(path for path in TAKEN if path.stem in FEW)), ids=lambda path: path.stem
)
def test_a_healthy_program_is_not_stopped(path):
    result = diagnostics.overfit(*load(path).build(), seconds=600)
    assert result.ok, str(result)
    assert result.report.faults == (), str(result)
    assert result.trials, str(result)


def fast(**options):
    """A classifier that learns a batch in a few dozen steps."""
    model = mlp(**options)
    model.optimizer.learning_rate = 1e-2
    return model


@pytest.mark.parametrize("data", [(X, Y), shuffled()], ids=["arrays", "tf.data"])
def test_a_classifier_learns_every_count_with_its_own_optimizer(data):
    result = diagnostics.overfit(fast(), data)
    assert [trial.outcome for trial in result.trials] == ["learned"] * 4, str(result)
    assert [trial.examples for trial in result.trials][:3] == [1, 2, 5]
    assert all(trial.best.theirs and trial.best.optimizer == "Adam" for trial in result.trials)
    five = result.trials[2].best
    assert five.answers[0].mean() < 0.6 < 0.8 <= five.answers[-1].mean()
    assert five.probabilities.shape[1:] == (5, 3)


def answers_divided_away():
    model = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(3), layers.Rescaling(1e-6)])
    model.compile(keras.optimizers.Adam(1e-3), from_logits())
    return model, (X, Y)


def states_masked_out():
    model = keras.Sequential(
        [layers.Input((FEATURES,)), layers.Dense(64, activation="relu"), layers.Rescaling(0.0), layers.Dense(3)]
    )
    model.compile(keras.optimizers.Adam(1e-3), from_logits())
    return model, (X, Y)


def labels_that_contradict_each_other():
    inputs = np.repeat(X[:2], 32, axis=0)
    return mlp(), (inputs, np.arange(64) % 3)


STOPS = {answers_divided_away: 1, states_masked_out: 2, labels_that_contradict_each_other: 5}


@pytest.mark.parametrize("build", STOPS, ids=lambda build: build.__name__)
def test_a_broken_program_stops_where_its_bug_says(build):
    result = diagnostics.overfit(*build(), seconds=600)  # however busy the machine is
    assert result.stops_at == STOPS[build], str(result)
    assert result.report.faults == ()
    assert not result.ok


def a_label_too_many():
    return mlp(), (X, np.where(np.arange(len(Y)) % 4, Y, 3))


def all_is_frozen():
    model = mlp()
    model.trainable = False
    model.compile(keras.optimizers.Adam(1e-3), from_logits())
    return model, (X, Y)


NAMED = {a_label_too_many: "labels-out-of-range", all_is_frozen: "no-gradient"}


@pytest.mark.parametrize("build", NAMED, ids=lambda build: build.__name__)
def test_a_rule_that_knows_the_bug_names_it(build):
    result = diagnostics.overfit(*build(), seconds=600)  # however busy the machine is
    assert NAMED[build] in all_rules_of(result.report), str(result)


class TestUntouched:
    def test_fit_afterwards_gives_the_same_weights_as_fit_without(self):
        def train(overfitted):
            keras.utils.set_random_seed(7)
            model, data = mlp(metrics=["accuracy"]), shuffled()
            if overfitted:
                assert diagnostics.overfit(model, data).trials
            model.fit(data, epochs=2, verbose=0)
            return state_of(model)

        assert_equal(train(False), train(True))


class TestLimits:
    def test_a_dataset_of_unknown_length_is_read(self):
        data = shuffled().filter(lambda x, y: True)
        assert int(data.cardinality()) < 0
        assert diagnostics.overfit(fast(), data).ok

    def test_a_generator_is_refused_in_words(self):
        data = tf.data.Dataset.from_generator(lambda: iter([(X, Y)]), output_types=(tf.float32, tf.int64))
        with pytest.raises(diagnostics.InvalidInput, match=r"overfit\(\) was given .* draws from a"):
            diagnostics.overfit(mlp(), data)

    def test_no_data_is_refused_in_words(self):
        with pytest.raises(diagnostics.InvalidInput, match=r"and no data\. Pass what fit .* overfit\(model"):
            diagnostics.overfit(mlp())

    def test_a_train_step_of_the_users_own_is_told(self):
        class Own(keras.Model):
            def __init__(self):
                super().__init__()
                self.layer = layers.Dense(3)

            def call(self, x):
                return self.layer(x)

            def train_step(self, data):
                return {}

        model = Own()
        model.compile(keras.optimizers.Adam(1e-3), from_logits())
        model(X[:2])
        assert "has a train_step of its own" in str(diagnostics.overfit(model, (X, Y)))

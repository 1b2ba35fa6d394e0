"""The overfit of one batch under `diagnose run`, which waits for the end of a short `fit`."""

import numpy as np
import pytest

from diagnostics.collectors.keras.replayable import planned_steps
from diagnostics.facts.pipeline import LossFacts
from diagnostics.facts.trials import TrialFacts
from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import LABELS, Subclassed, X, batches, failure, indices, keras, layers, tf

ROWS = np.random.default_rng(0).normal(size=(64, 4)).astype("float32")
CLASSES = (ROWS[:, 0] > 0).astype(int)
WAITS = "it waits for the end of the training, which may show that the model learns"


def classifier(optimizer):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((4,)), layers.Dense(16, "relu"), layers.Dense(2)])
    model.compile(optimizer, indices())
    return model


def fitted(model, *data, raises=None, **options):
    """Return the stage of the overfit before `fit` and after it, and the report after it."""
    early = []
    run = ScriptObserver(on_examined=early.append)
    try:
        raised = failure(lambda: model.fit(*data, verbose=0, **options)) if raises else None
        if raises is None:
            model.fit(*data, verbose=0, **options)
    finally:
        run.close()
    assert run.faults == []
    assert raises is None or isinstance(raised, raises)
    (training,) = run.trainings
    assert training.walk is None
    return overfit(early[0]), overfit(training.examined), training.examined


def overfit(report):
    (stage,) = (stage for stage in report.stages if stage.name == "one-batch overfit")
    return stage.status, stage.detail


def test_fit_that_learns_needs_no_overfit():
    early, late, report = fitted(classifier(keras.optimizers.Adam(0.02)), ROWS, CLASSES, epochs=30)
    assert early == ("not judged", WAITS)
    assert late == ("not judged", "not needed: the loss of the training itself fell")
    assert report.findings == ()


def test_fit_that_learns_nothing_is_followed_by_an_overfit_from_its_first_weights():
    _, late, report = fitted(classifier(keras.optimizers.SGD(1e-7)), ROWS, CLASSES, epochs=10)
    assert late[0] == "passed"
    facts = {type(fact): fact for fact in report.facts}
    assert facts[TrialFacts].losses[0] == pytest.approx(facts[LossFacts].value, rel=1e-5)
    assert [finding.rule for finding in report.findings] == ["learning-rate-too-low"]


class Ramp(keras.optimizers.schedules.LearningRateSchedule):
    """As in many tutorials: it has no `get_config`."""

    def __call__(self, step):
        return 1e-9 * (tf.cast(step, tf.float32) + 1.0)


class Scaled(keras.optimizers.SGD):
    """Cannot be built from its settings."""

    def __init__(self, width):
        super().__init__(1e-6 / width)


def test_schedule_without_settings_does_not_keep_the_overfit_from_running():
    _, late, report = fitted(classifier(keras.optimizers.Adam(Ramp())), ROWS, CLASSES, epochs=10)
    assert late[0] == "passed"
    assert report.findings == ()


def test_optimizer_that_cannot_be_built_again_is_no_finding():
    _, late, report = fitted(classifier(Scaled(32)), ROWS, CLASSES, epochs=10)
    assert late[0] == "not judged"
    assert "TypeError" in late[1]
    assert report.findings == ()


def test_what_was_found_during_the_fit_is_kept():
    """Evaluation data at another scale is found when `fit` ends."""
    held_out = (ROWS * 255, CLASSES)
    model = classifier(keras.optimizers.SGD(1e-7))
    _, late, report = fitted(model, ROWS, CLASSES, epochs=10, validation_data=held_out)
    assert late[0] == "passed"
    assert {"learning-rate-too-low", "evaluation-mismatch"} <= {finding.rule for finding in report.findings}


def test_further_batches_of_a_dataset_are_read_again_for_it():
    data = tf.data.Dataset.from_tensor_slices((ROWS, CLASSES)).batch(16)
    _, late, _ = fitted(classifier(keras.optimizers.SGD(1e3)), data, epochs=4)
    assert late[0] == "passed"


def test_fit_that_raises_is_followed_by_no_overfit():
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            raise ArithmeticError("an epoch that fails")

    model = classifier("adam")
    _, late, _ = fitted(model, ROWS, CLASSES, epochs=3, callbacks=[Stop()], raises=ArithmeticError)
    assert late == ("not judged", "the training ended before its last step")


def test_long_fit_is_preceded_by_the_overfit():
    class Stop(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = True

    early, late, _ = fitted(classifier("adam"), ROWS, CLASSES, epochs=1000, callbacks=[Stop()])
    assert early == late
    assert early[0] == "passed"


@pytest.mark.parametrize(
    ("data", "options", "steps"),
    [
        ((X, LABELS), {"epochs": 3}, 3),
        ((X, LABELS), {"epochs": "three"}, None),
        ((X, LABELS), {"epoch": 3}, None),
        ((X, LABELS, 3), {"epochs": 2}, 6),
        ((X, LABELS), {"batch_size": 2, "validation_split": 0.5, "epochs": 5}, 10),
        ((X, LABELS), {"epochs": 7, "initial_epoch": 4}, 3),
        ((batches((X, LABELS)),), {"epochs": 2}, 4),
        ((batches((X, LABELS)).repeat(),), {"epochs": 2}, None),
        ((batches((X, LABELS)).repeat(),), {"epochs": 2, "steps_per_epoch": 5}, 10),
    ],
)
def test_steps_are_counted_before_fit(data, options, steps):
    assert planned_steps(Subclassed(3), *data, **options) == steps

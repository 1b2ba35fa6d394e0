"""An evaluation of another instance than the trained one, as a script under `diagnose run` makes it."""

import copy

import numpy as np
import pytest

from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers, tf

RNG = np.random.default_rng(0)
X = RNG.normal(size=(96, 12)).astype("float32")
Y = (X[:, 0] > 0).astype("float32")


def made(width=32, **options):
    model = keras.Sequential(
        [layers.Input((12,)), layers.Dense(width, "relu", **options), layers.Dense(1, "sigmoid")]
    )
    model.compile("adam", "binary_crossentropy")
    return model


class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(32, "relu"), layers.Dense(1, "sigmoid")

    def call(self, inputs):
        return self.out(self.hidden(inputs))


def own():
    model = Own()
    model.compile("adam", "binary_crossentropy")
    return model


def found(script):
    """Return the messages of a script about models that are made anew."""
    run = ScriptObserver()
    try:
        script()
    finally:
        run.close()
    assert run.faults == []
    reports = [*run.examined, *run.watched()]
    findings = [finding for report in reports for finding in report.findings]
    return [finding.message for finding in findings if finding.rule == "recreated-model"]


def fit(model):
    model.fit(X, Y, verbose=0)
    return model


def step_by_step(model):
    for _ in range(3):
        model.train_on_batch(X, Y)
    return model


def under_a_tape(model, traced=True):
    optimizer = keras.optimizers.Adam(0.01)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(keras.losses.binary_crossentropy(y, model(x, training=True)))
        optimizer.apply_gradients(
            zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables, strict=True)
        )

    step = tf.function(step) if traced else step
    for _ in range(3):
        step(tf.constant(X), tf.constant(Y[:, None]))
    return model


def eagerly(model):
    return under_a_tape(model, traced=False)


def evaluate(model):
    model.evaluate(X, Y, verbose=0)


def predict(model):
    model.predict(X, verbose=0)


def call(model):
    model(X, training=False)


@pytest.mark.parametrize(
    ("make", "train", "judge"),
    [
        (made, fit, evaluate),
        (made, fit, predict),
        (made, fit, call),
        (made, step_by_step, evaluate),
        (made, under_a_tape, call),
        (made, eagerly, call),
    ],
)
@pytest.mark.parametrize("kept", [True, False], ids=["the trained one is there", "it is gone"])
def test_a_second_instance_is_found(make, train, judge, kept):
    def script():
        model = train(make())
        if not kept:
            del model
        judge(make())

    (message,) = found(script)
    assert message == (
        "The Sequential evaluated after training is not the instance that was trained: it still has its "
        "random initial weights, and the trained model is never evaluated."
    )


def test_a_second_instance_of_a_class_is_found():
    def script():
        fit(own())
        model = own()
        predict(model)

    (message,) = found(script)
    assert message.startswith("The Own evaluated")


def test_a_clone_has_random_weights():
    (message,) = found(lambda: predict(keras.models.clone_model(fit(made()))))
    assert message.startswith("The Sequential evaluated")


def loaded(model, path):
    model.save_weights(path / "model.weights.h5")
    other = made()
    other.load_weights(path / "model.weights.h5")
    return other


def loaded_after_a_pass_that_makes_the_weights(model, path):
    model.save_weights(path / "model.weights.h5")
    other = made()
    call(other)
    other.load_weights(path / "model.weights.h5")
    return other


def read_back(model, path):
    model.save(path / "model.keras")
    return keras.models.load_model(path / "model.keras")


def given(model, _path):
    other = keras.models.clone_model(model)
    other.set_weights(model.get_weights())
    return other


def restored(model, path):
    tf.train.Checkpoint(model=model).write(str(path / "model"))
    other = made()
    tf.train.Checkpoint(model=other).restore(str(path / "model"))
    return other


def copied(model, _path):
    return copy.deepcopy(model)


def part(model, _path):
    return keras.Model(model.inputs[0], model.outputs[0])


@pytest.mark.parametrize(
    "make", [loaded, loaded_after_a_pass_that_makes_the_weights, read_back, given, restored, copied, part]
)
def test_an_instance_with_the_weights_of_the_trained_one_is_none(make, tmp_path):
    assert found(lambda: call(make(fit(made()), tmp_path))) == []


def beside_the_trained_one():
    model = fit(made())
    evaluate(made())
    call(model)


def beside_one_that_was_trained_in_two_phases():
    model = made()
    model.layers[0].trainable = False
    model.compile("adam", "binary_crossentropy")
    fit(model)
    evaluate(model)
    model.layers[0].trainable = True
    model.compile("adam", "binary_crossentropy")
    fit(model)
    for trainable in (True, False):
        other = made()
        other.layers[0].trainable = trainable
        evaluate(other)
    evaluate(model)


def before_the_training_goes_on():
    model = fit(made())
    evaluate(made())
    fit(model)


def before_it_is_trained():
    fit(made())
    model = made()
    evaluate(model)
    under_a_tape(model)


def of_another_width():
    fit(made())
    evaluate(made(16))


def frozen():
    fit(made())
    model = made()
    model.trainable = False
    evaluate(model)


def drawn_otherwise():
    fit(made(kernel_initializer="ones"))
    evaluate(made(kernel_initializer="ones"))


def of_symbols():
    fit(made())
    keras.Model(inputs := keras.Input((12,)), made()(inputs))


@pytest.mark.parametrize(
    "script",
    [
        beside_the_trained_one,
        beside_one_that_was_trained_in_two_phases,
        before_the_training_goes_on,
        before_it_is_trained,
        of_another_width,
        frozen,
        drawn_otherwise,
        of_symbols,
    ],
)
def test_a_model_that_may_be_meant_so_is_left_alone(script):
    assert found(script) == []

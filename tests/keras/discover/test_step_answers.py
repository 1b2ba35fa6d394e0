"""What a train step of a model without `call` compares with its input, computed again from the traced graph."""

import time
from types import SimpleNamespace

import numpy as np
import pytest

from diagnostics.collectors.isolation.guard import FaultGuard
from diagnostics.collectors.keras.dependence.subject import keep_batch
from diagnostics.collectors.keras.discover.step_answers import StepAnswers
from diagnostics.run import looks
from tests.keras.fits import keras, layers, tf

pytestmark = pytest.mark.filterwarnings("ignore")
ROWS = np.random.default_rng(0).random((128, 20)).astype("float32")
KEPT = keep_batch(ROWS[:32], None, None)


def attempt(work, *arguments, **options):
    return work(*arguments, **options)


class Parts(keras.Model):
    """Calls two parts, and adds a penalty to what a function makes of input and answer."""

    def __init__(self, loss_of, last=None):
        super().__init__()
        self.loss_of = loss_of
        self.encoder = keras.Sequential([keras.Input((20,)), layers.Dense(4)])
        self.decoder = keras.Sequential([keras.Input((4,)), layers.Dense(20, last)])
        self.noise = keras.random.SeedGenerator(1)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            code = self.encoder(data)
            code += 0.0 * keras.random.normal(tf.shape(code), seed=self.noise)
            loss = self.loss_of(data, self.decoder(code)) + 0.25 * tf.reduce_mean(code**2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


def seen(model, rate=0.0, **options):
    keras.utils.set_random_seed(0)
    model.compile(keras.optimizers.SGD(rate), **options)
    answers = StepAnswers(attempt)
    model.fit(ROWS, batch_size=32, epochs=1, verbose=0)
    answers.close()
    return answers.facts(KEPT)


def squares(x, answer):
    return tf.reduce_mean((x - answer) ** 2)


LOSSES = pytest.mark.parametrize(
    ("loss_of", "last"),
    [
        (squares, None),
        (lambda x, answer: tf.reduce_mean(tf.reduce_sum(tf.math.squared_difference(answer, x), 1)), None),
        (lambda x, answer: tf.reduce_mean(keras.losses.binary_crossentropy(x, answer)), "sigmoid"),
        (
            lambda x, p: -tf.reduce_mean(x * tf.math.log(p + 1e-7) + (1 - x) * tf.math.log(1 - p + 1e-7)),
            "sigmoid",
        ),
    ],
    ids=["squares", "sums of squares", "cross-entropy of Keras", "cross-entropy by hand"],
)


@LOSSES
def test_answers_are_compared_with_the_input(loss_of, last):
    model = Parts(loss_of, last)
    found = seen(model)
    answers = model.decoder(model.encoder(KEPT.inputs[0])).numpy()
    spread = np.sqrt(np.square(KEPT.inputs[0] - KEPT.inputs[0].mean(0)).mean())
    assert found.answers == pytest.approx(np.sqrt(np.square(answers - answers.mean(0)).mean()) / spread, rel=1e-4)
    assert (found.known, found.numbers) == (True, 20)


def test_rows_are_repeated_where_the_graph_has_a_batch_size():
    keras.utils.set_random_seed(0)
    model = Parts(squares)
    model.compile(keras.optimizers.SGD(0.0))
    answers = StepAnswers(attempt)
    model.fit(tf.data.Dataset.from_tensor_slices(ROWS).batch(64, drop_remainder=True), verbose=0)
    answers.close()
    assert answers.facts(keep_batch(ROWS[:30], None, None)).numbers == 20


def test_logits_are_compared_as_probabilities():
    model = Parts(lambda x, logits: tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(x, logits)))
    found = seen(model)
    answers = tf.sigmoid(model.decoder(model.encoder(KEPT.inputs[0]))).numpy()
    spread = np.sqrt(np.square(KEPT.inputs[0] - KEPT.inputs[0].mean(0)).mean())
    assert found.answers == pytest.approx(np.sqrt(np.square(answers - answers.mean(0)).mean()) / spread, rel=1e-4)


def test_terms_are_those_of_the_weights_at_the_end():
    model = Parts(squares)
    found = seen(model, rate=0.05)
    code = model.encoder(KEPT.inputs[0])
    expected = float(squares(KEPT.inputs[0], model.decoder(code))), 0.25 * float(tf.reduce_mean(code**2))
    assert found.terms == pytest.approx(expected, rel=1e-4)


def test_a_call_is_asked_for_the_answers_and_the_step_for_the_terms():
    class Called(Parts):
        def call(self, x):
            return 0.0 * self.decoder(self.encoder(x))

    keras.utils.set_random_seed(0)
    model = Called(squares)
    model.compile("sgd")
    answers = StepAnswers(attempt)
    pipeline = SimpleNamespace(batch_parts=(ROWS[:32], None, None), model=model)
    look = looks.of_keras(model, pipeline, FaultGuard(), step_answers=lambda: answers)
    model.fit(ROWS, batch_size=32, verbose=0)
    model(ROWS[:2])  # builds it
    same = look(time.monotonic() + 60, lambda: None)[0].sameness
    assert (same.answers, same.known, len(same.terms)) == (0, True, 2)


def test_a_part_of_the_input_is_not_the_input():
    model = Parts(lambda x, answer: squares(x[:, 4:], answer))
    model.decoder = keras.Sequential([keras.Input((4,)), layers.Dense(16)])
    assert seen(model).known is False


def test_nothing_of_the_model_changes():
    model = Parts(squares)
    keras.utils.set_random_seed(0)
    model.compile(keras.optimizers.SGD(0.1))
    answers = StepAnswers(attempt)
    model.fit(ROWS, batch_size=32, epochs=1, verbose=0)
    answers.close()
    before = [np.array(variable) for variable in (*model.variables, model.noise.state)]
    assert answers.facts(KEPT) is not None
    after = [np.array(variable) for variable in (*model.variables, model.noise.state)]
    assert all(map(np.array_equal, before, after))


@pytest.mark.parametrize(
    "loss_of",
    [
        lambda x, answer: tf.reduce_mean(answer**2) + 0 * tf.reduce_sum(x),
        lambda x, answer: tf.reduce_mean((x * answer) ** 2),
        lambda x, answer: tf.reduce_mean((x + answer) ** 2),
    ],
    ids=["no comparison", "a gate", "a residual"],
)
def test_answers_that_are_not_compared_with_the_input_are_left_out(loss_of):
    assert seen(Parts(loss_of)) is None


def test_a_step_that_is_not_traced_is_left_out():
    assert seen(Parts(squares), run_eagerly=True) is None


def test_a_step_that_writes_on_the_way_is_not_computed_again():
    counter = tf.Variable(0.0)
    assert seen(Parts(lambda x, answer: squares(x + 0 * counter.assign_add(1.0), answer))) is None


def test_patches_are_gone_after_the_first_tape():
    before = keras.layers.Layer.__call__, tf.GradientTape.gradient
    answers = StepAnswers(attempt)
    model = Parts(squares)
    model.compile("sgd")
    model.fit(ROWS, verbose=0)
    assert (keras.layers.Layer.__call__, tf.GradientTape.gradient) == before
    answers.close()

"""A model without `call`, whose train_step calls its parts, as Keras' example of a VAE has it."""

import numpy as np
import pytest

from diagnostics.api.checks.gradients import GradientChecks
from diagnostics.errors import InvalidInput
from diagnostics.run.observer import ScriptObserver
from tests.keras.fits import keras, layers, tf

pytestmark = pytest.mark.filterwarnings("ignore")
RNG = np.random.default_rng(0)
ROWS = (RNG.normal(size=(256, 2)) @ RNG.normal(size=(2, 8)) / 4).astype("float32")


class VAE(keras.Model):
    def __init__(self, built=True):
        super().__init__()
        given = [keras.Input((8,))] if built else []
        self.encoder = keras.Sequential([*given, layers.Dense(16, "relu"), layers.Dense(4)])
        self.decoder = keras.Sequential([*([keras.Input((2,))] if built else []), layers.Dense(8)])
        self.tracker = keras.metrics.Mean(name="loss")

    @property
    def metrics(self):
        return [self.tracker]

    def train_step(self, data):
        with tf.GradientTape() as tape:
            mean, log_variance = tf.split(self.encoder(data), 2, axis=1)
            z = mean + tf.exp(0.5 * log_variance) * keras.random.normal(tf.shape(mean), seed=1)
            error = tf.reduce_mean(tf.reduce_sum((data - self.decoder(z)) ** 2, 1))
            kl = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + log_variance - mean**2 - tf.exp(log_variance), 1))
            loss = error + kl
        gradients = tape.gradient(loss, self.trainable_weights)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_weights, strict=True))
        self.tracker.update_state(loss)
        return {"loss": self.tracker.result()}


class Callable(VAE):
    """It has a `call`, too, which nothing calls."""

    def call(self, rows):
        return self.decoder(self.encoder(rows)[:, :2])


def compiled(kind=VAE, rate=1e-2, built=True):
    keras.utils.set_random_seed(0)
    model = kind(built)
    model.compile(keras.optimizers.Adam(rate))
    return model


def fit(model, rows, as_dataset):
    if as_dataset:  # its rows are drawn by `fit` alone
        dataset = tf.data.Dataset.from_tensor_slices(rows).shuffle(256, seed=0).batch(32)
        return model.fit(dataset, epochs=5, verbose=0).history["loss"]
    return model.fit(rows, epochs=5, batch_size=32, verbose=0).history["loss"]


def run(model, rows=ROWS, as_dataset=False):
    looking = ScriptObserver(looks_again=True)
    try:
        losses = fit(model, rows, as_dataset)
    finally:
        looking.close()
    looking.look_again(60)
    assert looking.faults == []
    (training,) = looking.trainings
    return losses, training.examined, looking.watched()[0]


CASES = pytest.mark.parametrize(
    ("kind", "built", "as_dataset"),
    [(VAE, True, False), (VAE, True, True), (VAE, False, False), (VAE, False, True), (Callable, True, False)],
    ids=["arrays", "dataset", "unbuilt parts", "unbuilt parts and dataset", "with a call"],
)


@CASES
def test_a_healthy_one_gets_no_finding_and_trains_the_same(kind, built, as_dataset):
    alone, model = compiled(kind, built=built), compiled(kind, built=built)
    plain = fit(alone, ROWS, as_dataset)
    losses, examined, watched = run(model, ROWS, as_dataset)
    assert losses == plain
    assert all(map(np.array_equal, alone.get_weights(), model.get_weights()))
    assert model.built is alone.built
    assert (examined.findings, watched.findings) == ((), ())


@CASES
def test_data_and_model_are_judged_and_advice_can_be_followed(kind, built, as_dataset):
    _, examined, watched = run(compiled(kind, built=built), ROWS, as_dataset)
    stages = {stage.name: stage for stage in examined.stages}
    assert "model(x)" not in stages["forward and loss"].detail
    assert {stages[name].status for name in ("dataset", "batch", "optimizer step")} == {"passed"}
    judged = {"unchanged-parameters", "optimizer-misses-parameters"}
    assert (judged | {"symmetric-initialization"} if built else judged) <= watched.judged


def test_a_rate_of_zero_is_named():
    _, _, watched = run(compiled(rate=0.0))
    assert "unchanged-parameters" in [finding.rule for finding in watched.findings]


def test_equal_weights_from_the_start_are_named():
    model = compiled()
    model.encoder.layers[0].kernel.assign(np.full((8, 16), 0.1))
    model.encoder.layers[1].kernel.assign(np.full((16, 4), 0.1))
    _, _, watched = run(model)
    assert "symmetric-initialization" in [finding.rule for finding in watched.findings]


def test_the_call_to_make_first_is_one_that_works():
    with pytest.raises(InvalidInput, match="call each of its parts once on a batch"):
        GradientChecks().every_parameter(compiled(built=False), (ROWS[:8], ROWS[:8]))

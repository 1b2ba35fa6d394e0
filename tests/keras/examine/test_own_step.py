"""A model whose train_step is its own may be called with something else than the inputs of a batch."""

import pytest

import diagnostics
from tests.keras.programs import X, keras, layers, rules, stages, tf


def embedding():
    return keras.Sequential([keras.Input(X.shape[1:]), layers.Dense(4)])


class OwnStep(keras.Model):
    def __init__(self):
        super().__init__()
        self.net = embedding()

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = self.own_loss(data)
        found = tape.gradient(loss, self.net.trainable_weights)
        self.optimizer.apply_gradients(zip(found, self.net.trainable_weights, strict=True))
        return {"loss": loss}


class Triplets(OwnStep):
    """Takes all three parts of a batch."""

    def call(self, three):
        anchor, same, other = map(self.net, three)
        return keras.ops.sum((anchor - same) ** 2, -1), keras.ops.sum((anchor - other) ** 2, -1)

    def own_loss(self, data):
        near, far = self(data)
        return keras.ops.mean(keras.ops.relu(near - far + 1.0))


class Denoiser(OwnStep):
    """Takes the level of the noise, too."""

    def call(self, rows, level):
        return self.net(rows * level)

    def own_loss(self, rows):
        return keras.ops.mean(self(rows, keras.random.uniform((1, 1))) ** 2)


class Views(OwnStep):
    """Takes two views that the step makes, by name."""

    def call(self, views):
        return self.net(views["one"]) - self.net(views["other"])

    def own_loss(self, rows):
        return keras.ops.mean(self({"one": rows, "other": rows[::-1]}) ** 2)


def fitted(kind):
    """Return the model with weights; its own step is right, or this raises."""
    model = kind()
    model.compile(keras.optimizers.Adam(1e-3))
    model.fit(data_for(kind), verbose=0)
    return model


def data_for(kind):
    parts = (X, X[::-1], X[1:].repeat(2, 0)[: len(X)]) if kind is Triplets else X
    return tf.data.Dataset.from_tensor_slices(parts).batch(20)


@pytest.mark.parametrize("kind", [Triplets, Denoiser, Views])
def test_a_call_that_only_we_make_proves_nothing(kind):
    report = diagnostics.examine(fitted(kind), data_for(kind))
    assert rules(report) == [], str(report)
    assert stages(report)["forward and loss"] == "not judged"
    said = {stage.name: stage.detail for stage in report.stages}["forward and loss"]
    assert said.startswith(f"{kind.__name__} has a train_step of its own, which may call it with something else")


def test_a_call_of_keras_own_step_is_judged():
    class Plain(keras.Model):
        call = Triplets.call

        def __init__(self):
            super().__init__()
            self.net = embedding()

    model = Plain()
    model((X, X, X))
    model.compile("adam", "mse")
    assert "shape-mismatch" in rules(diagnostics.examine(model, (X, X[:, 0])))

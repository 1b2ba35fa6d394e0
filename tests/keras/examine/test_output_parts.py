"""What each output of a model ends in, in every style of model, and outputs judged one by one."""

import numpy as np
import pytest

import diagnostics
from diagnostics.collectors.keras.model import activation_before
from tests.keras.programs import X, keras, layers, tf

ANGLES = (25 * np.tanh(X[:, :1])).astype("float32")
CLASSES = keras.utils.to_categorical(X[:, :3].argmax(1), 3)


class Ending(keras.Model):
    """Its last layer, and what follows it."""

    def __init__(self, last, after=lambda answer: answer):
        super().__init__()
        self.hidden, self.last, self.after = layers.Dense(8, "relu"), last, after

    def call(self, x):
        return self.after(self.last(self.hidden(x)))


def found(model, target, loss="mse"):
    model.compile("adam", loss)
    model(X[:2])  # makes the weights
    report = diagnostics.examine(model, (X, target))
    assert report.faults == ()
    return {finding.rule: finding for finding in report.findings}


class TestSubclassed:
    @pytest.mark.parametrize(
        "model",
        [
            Ending(layers.Dense(1, "tanh")),
            Ending(layers.Dense(1), layers.Activation("tanh")),
            Ending(keras.Sequential([layers.Dense(4), layers.Dense(1, "tanh"), layers.Reshape((1,))])),
        ],
        ids=["dense", "activation", "nested"],
    )
    def test_targets_beyond_its_last_function_are_named(self, model):
        assert found(model, ANGLES)["targets-out-of-reach"].evidence["last_activation"] == "tanh"

    @pytest.mark.parametrize(
        "model",
        [
            Ending(layers.Dense(1)),
            Ending(layers.Dense(1, "tanh"), lambda answer: 25 * answer),
            Ending(layers.Dense(1, "tanh"), layers.Rescaling(25.0)),
        ],
        ids=["linear", "scaled", "rescaling"],
    )
    def test_what_follows_the_last_layer_counts(self, model):
        assert "targets-out-of-reach" not in found(model, ANGLES)


def two_outputs(angle="tanh", kind="softmax"):
    x = keras.Input((X.shape[1],))
    hidden = layers.Dense(8, "relu")(x)
    return keras.Model(
        x, [layers.Dense(1, angle, name="angle")(hidden), layers.Dense(3, kind, name="kind")(hidden)]
    )


class TestSeveral:
    def test_targets_beyond_one_of_them_are_named(self):
        finding = found(two_outputs(), [ANGLES, CLASSES], ["mse", "categorical_crossentropy"])
        assert finding["targets-out-of-reach"].message.startswith("Output 'angle': The model ends with tanh")

    def test_losses_in_the_wrong_order_are_named(self):
        model = two_outputs(angle=None)
        finding = found(model, {"angle": ANGLES, "kind": CLASSES}, {"angle": "mse", "kind": "mse"})
        assert finding.keys().isdisjoint({"targets-out-of-reach", "logits-as-probabilities"})
        x = keras.Input((X.shape[1],))
        model = keras.Model(x, [layers.Dense(3, name="box")(x), layers.Dense(3, "softmax", name="kind")(x)])
        boxes = np.abs(X[:, :3]) * 40
        swapped = found(model, [boxes, CLASSES], ["categorical_crossentropy", "mse"])
        assert swapped["logits-as-probabilities"].message.startswith("Output 'box': ")

    def test_a_loss_of_one_s_own_is_not_judged_by_its_name(self):
        def mse(wanted, answers):
            return keras.ops.mean((wanted / 25 - answers) ** 2, axis=-1)

        clean = found(two_outputs(), [ANGLES, CLASSES], [mse, "categorical_crossentropy"])
        assert "targets-out-of-reach" not in clean

    def test_outputs_in_order_are_clean(self):
        losses = {"angle": "mse", "kind": "categorical_crossentropy"}
        targets = {"angle": ANGLES / 25, "kind": CLASSES}
        clean = found(two_outputs(), targets, losses)
        assert clean.keys().isdisjoint({"targets-out-of-reach", "logits-as-probabilities"})


def test_layers_are_called_as_before_afterwards():
    plain = keras.layers.Layer.__call__
    found(Ending(layers.Dense(1, "tanh")), ANGLES)
    assert keras.layers.Layer.__call__ is plain
    assert tf.is_tensor(Ending(layers.Dense(1))(X[:2]))


class TestActivationBefore:
    @pytest.mark.parametrize(
        ("ending", "before"),
        [
            ((layers.Dense(3, "softmax"), layers.Softmax()), "softmax"),
            ((layers.Dense(3, "softmax"), layers.Activation("softmax"), layers.Reshape((3,))), "softmax"),
            ((layers.Dense(3), layers.Softmax()), "linear"),
            ((layers.Dense(3, "softmax"), layers.Dense(3, "softmax")), None),
        ],
    )
    def test_is_that_of_the_layer_below_one_without_weights(self, ending, before):
        assert activation_before(keras.Sequential([layers.Input((4,)), *ending])) == before

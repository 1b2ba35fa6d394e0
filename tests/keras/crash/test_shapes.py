"""Real failures of Keras on TensorFlow over shapes, recognised live and from what Python prints of them."""

from dataclasses import replace

import numpy as np
import pytest

from diagnostics.facts.crash.shapes import AxesMisfit, LayerMisfit, OperandsMisfit, ReshapeMisfit
from tests.keras.fits import EAGER, GRAPH, LABELS, Subclassed, X, fit, keras, layers, tf
from tests.support.crashes import explained, failure, recognised

pytestmark = pytest.mark.filterwarnings("ignore")


def ones(*shape):
    return np.ones(shape, "float32")


class TestLayers:
    def test_the_message_names_the_layer(self):
        model = keras.Sequential([layers.Input((4,)), layers.Dense(3, name="head")])
        symptom = LayerMisfit(4, 5, None, "head", None, (None, 5), 1, library="keras")
        assert recognised(fit(model, ones(8, 5), LABELS)) == (symptom, symptom)

    @pytest.mark.parametrize("mode", [GRAPH, EAGER], ids=["graph", "eager"])
    def test_a_layer_within_a_model_of_the_users_own(self, mode):
        class Two(Subclassed):
            def __init__(self):
                super().__init__(5)
                self.last = layers.Dense(3, name="last")
                self.last.build((None, 4))

            def call(self, inputs):
                return self.last(super().call(inputs))

        rows = None if mode is GRAPH else 8
        for finding in explained(fit(Two(), X, LABELS, mode=mode)):
            assert (
                finding.message == "last was built for inputs of size 4, but its input has shape "
                f"({rows}, 5), with size 5 along axis 1."
            )

    def test_images_that_were_not_flattened(self):
        model = keras.Sequential([layers.Input((784,)), layers.Dense(3)])
        for finding in explained(fit(model, ones(8, 28, 28), LABELS)):
            assert finding.message == (
                "This model was built for inputs of size 784, but its input has shape (None, 28, 28), with size "
                "28 along axis 2. Flattened, each example has 28 x 28 = 784 values."
            )
            assert finding.fix == "x = x.reshape(len(x), -1)"
            assert finding.alternatives == ("keras.layers.Flatten() as the model's first layer",)

    def test_channels_first(self):
        model = keras.Sequential(
            [layers.Input((32, 32, 3)), layers.Conv2D(3, 3), layers.Flatten(), layers.Dense(2)]
        )
        for finding in explained(fit(model, ones(8, 3, 32, 32), LABELS)):
            assert finding.message.endswith("with size 32 along axis 3. Axis 1 of the input has size 3.")
            assert finding.fix == "call keras.ops.transpose(x, (0, 2, 3, 1)) before this layer"

    def test_a_functional_model_compares_the_whole_shape(self):
        inputs = layers.Input((4,))
        model = keras.Model(inputs, layers.Dense(3)(inputs), name="scores")
        for symptom in recognised(fit(model, ones(8, 5), LABELS)):
            assert (symptom.path, symptom.wanted, symptom.got, symptom.shape) == ("scores", 4, 5, (None, 5))

    @pytest.mark.parametrize(
        ("make", "wanted", "shape", "name"),
        [
            (
                lambda: layers.Conv2D(3, 3, name="stem")(layers.Input((28, 28))),
                "at least 4",
                (None, 28, 28),
                "stem",
            ),
            (lambda: layers.LSTM(3, name="rnn")(layers.Input((28,))), "3", (None, 28), "rnn"),
        ],
        ids=["Conv2D", "LSTM"],
    )
    def test_too_few_axes(self, make, wanted, shape, name):
        symptom = AxesMisfit(wanted, len(shape), None, name, shape, library="keras")
        assert recognised(failure(make)) == (symptom, symptom)


class TestOperands:
    def test_a_matrix_product(self):
        class Product(Subclassed):
            def __init__(self):
                super().__init__(3)
                self.table = self.add_weight(shape=(4, 3))

            def call(self, inputs):
                return tf.matmul(inputs, self.table)

        for mode, rows in ((GRAPH, None), (EAGER, 8)):
            symptom = OperandsMisfit("matrix product", 5, 4, None, ((rows, 5), (4, 3)), library="keras")
            live = replace(symptom, tensors={"inputs": (rows, 5), "self.table": (4, 3)})
            assert recognised(fit(Product(), ones(8, 5), LABELS, mode=mode)) == (live, symptom)

    @pytest.mark.parametrize(
        ("run", "operation", "one", "other", "axis", "shapes"),
        [
            (lambda: tf.zeros((8, 3)) + tf.zeros((8, 5)), "element-wise", 3, 5, 1, ((8, 3), (8, 5))),
            (
                lambda: layers.Add()([layers.Input((4,)), layers.Input((5,))]),
                "element-wise",
                4,
                5,
                None,
                ((4,), (5,)),
            ),
            (
                lambda: layers.Concatenate()([layers.Input((4, 8)), layers.Input((5, 8))]),
                "concatenation",
                4,
                5,
                None,
                ((None, 4, 8), (None, 5, 8)),
            ),
            (
                lambda: tf.concat([tf.zeros((8, 3)), tf.zeros((7, 5))], 1),
                "concatenation",
                8,
                7,
                None,
                ((8, 3), (7, 5)),
            ),
        ],
        ids=["sum", "Add", "Concatenate", "concat"],
    )
    def test_the_message_holds_the_shapes(self, run, operation, one, other, axis, shapes):
        symptom = OperandsMisfit(operation, one, other, axis, shapes, library="keras")
        assert recognised(failure(run)) == (symptom, symptom)

    def test_a_reshape(self):
        symptom = ReshapeMisfit((28, 29), 784, None, (784,), library="keras")
        error = failure(lambda: layers.Reshape((28, 29))(layers.Input((784,))))
        assert recognised(error) == (symptom, symptom)

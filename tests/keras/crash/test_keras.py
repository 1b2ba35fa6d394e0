"""Real failures of Keras on TensorFlow, recognised live and from what Python prints of them."""

import numpy as np
import pytest

import diagnostics
from diagnostics.collectors.crash.read import facts_of_exception
from diagnostics.facts.crash.data import LabelsInInputsCrash, NoPathToParameters, ShapesDiffer
from diagnostics.facts.crash.shapes import OperandsMisfit
from tests.keras.fits import (
    EAGER,
    GRAPH,
    LABELS,
    XLA,
    Subclassed,
    X,
    batches,
    fit,
    indices,
    keras,
    layers,
    sequential,
    tf,
)
from tests.support.crashes import explained, facts_of_text, failure, printed, recognised

pytestmark = pytest.mark.filterwarnings("ignore")


def functional(outputs):
    inputs = layers.Input((4,), name="x")
    return keras.Model({"x": inputs}, layers.Dense(outputs)(inputs))


OUT_OF_RANGE = (
    "The labels range from 0 to 2, so there are at least 3 classes, but the model has 2 outputs. 2 of the "
    "8 labels in this batch are out of range (label 2)."
)


class TestLabelBeyondOutputs:
    @pytest.mark.parametrize("mode", [GRAPH, EAGER], ids=["graph", "eager"])
    @pytest.mark.parametrize("make", [sequential, functional, Subclassed])
    def test_the_message_holds_labels_and_outputs(self, make, mode):
        for finding in explained(fit(make(2), X, LABELS, mode=mode)):
            assert (finding.rule, finding.message) == ("labels-out-of-range", OUT_OF_RANGE)
            assert finding.fix == "keras.layers.Dense(3) as the last layer"
            assert finding.where.function == "<lambda>"

    def test_labels_below_zero(self):
        for finding in explained(fit(sequential(3), X, LABELS - 1)):
            assert finding.message == (
                "The labels range from -1 to 1, but classes are counted from 0: 2 of the 8 labels in this "
                "batch are out of range (label -1)."
            )

    def test_in_a_step_of_the_users_own_the_line_is_that_of_the_loss(self):
        class Own(Subclassed):
            def train_step(self, data):
                x, y = data
                with tf.GradientTape() as tape:
                    loss = indices()(y, self(x))
                self.optimizer.apply(tape.gradient(loss, self.trainable_variables), self.trainable_variables)
                return {"loss": loss}

        error = fit(Own(2), X, LABELS)
        live, text = explained(error)
        assert (live.message, live.where.function) == (OUT_OF_RANGE, "train_step")
        assert text.where.function == "train_step"
        crash = facts_of_exception(error)[0]
        assert (
            next(frame.code for frame in reversed(crash.frames) if frame.yours) == "loss = indices()(y, self(x))"
        )

    def test_in_a_loop_of_the_users_own(self):
        model, loss_fn = sequential(2), indices()

        @tf.function
        def step(x, y):
            return loss_fn(y, model(x))

        for run, function in ((lambda: step(X, LABELS), "step"), (lambda: loss_fn(LABELS, model(X)), "<lambda>")):
            for finding in explained(failure(run)):
                assert (finding.message, finding.where.function) == (OUT_OF_RANGE, function)


NO_TARGET = (
    'The loss gets no target: "labels" is among the inputs (x and labels), which only the model receives. A '
    "loss given to compile() needs a target to compare the prediction with, so neither the loss "
    "nor its gradient can be computed."
)
NO_TARGET_FROM_TEXT = (
    "The loss probably got no target, because the labels are among the inputs, which only the model "
    "receives. The name of the input that holds the labels cannot be read from the traceback "
    "text: pass the exception to diagnostics.explain. A loss given to compile() needs a target to "
    "compare the prediction with, so neither the loss nor its gradient can be computed."
)


class TestNoTarget:
    INPUTS = {"x": X, "labels": LABELS}

    @pytest.mark.parametrize("mode", [GRAPH, EAGER, XLA], ids=["graph", "eager", "XLA"])
    def test_labels_among_the_inputs_of_a_dataset(self, mode):
        live, text = explained(fit(Subclassed(3), batches(self.INPUTS), mode=mode))
        assert (live.rule, live.message) == ("labels-in-inputs", NO_TARGET)
        assert live.fix.startswith('dataset.to_tf_dataset(columns=["x"], label_cols=["labels"], ...); if the')
        assert (text.rule, text.message) == ("labels-in-inputs", NO_TARGET_FROM_TEXT)
        assert live.where.function == "<lambda>"

    @pytest.mark.parametrize(
        "call",
        [
            lambda model: model.fit({"x": X, "labels": LABELS}, verbose=0),
            lambda model: model.evaluate({"x": X, "labels": LABELS}, verbose=0),
            lambda model: model.train_on_batch({"x": X, "labels": LABELS}),
            lambda model: model.fit({"x": X}, LABELS, validation_data=batches(TestNoTarget.INPUTS), verbose=0),
        ],
        ids=["fit", "evaluate", "train_on_batch", "validation"],
    )
    def test_wherever_they_are_handed_over(self, call):
        model = Subclassed(3)
        model.compile("adam", indices(), run_eagerly=True)
        live, text = explained(failure(lambda: call(model)))
        assert (live.message, text.message) == (NO_TARGET, NO_TARGET_FROM_TEXT)

    def test_in_a_functional_model_they_take_the_place_of_an_input(self):
        error = fit(functional(3), self.INPUTS)
        crash = facts_of_exception(error)[0]
        assert crash.first_line.startswith("Invalid input shape for input Tensor(")
        for finding in explained(error):
            assert (finding.rule, finding.message) == ("labels-in-inputs", NO_TARGET)

    def test_no_labels_at_all(self):
        live, _ = explained(fit(sequential(3), batches(X)))
        assert (live.rule, live.message) == (
            "labels-missing",
            (
                "fit() got inputs, but no labels, so the loss given to compile() has no target to compare the "
                "prediction with."
            ),
        )

    def test_batches_that_cannot_be_read_without_taking_one(self):
        live, _ = explained(fit(Subclassed(3), (({"x": X, "labels": LABELS},) for _ in range(2))))
        said = "The name of the input that holds the labels could not be read from the traceback. A loss"
        assert said in live.message

    def test_a_none_in_a_layer_is_another_matter(self):
        class Masked(Subclassed):
            def call(self, inputs, mask=None):
                return super().call(inputs) * keras.ops.convert_to_tensor(mask)

        error = fit(Masked(3), X, LABELS)
        assert [symptom.rule for symptom in recognised(error)] == ["refused-call"] * 2
        assert diagnostics.explain(error).crash.first_line == "None values not supported."

    def test_so_is_a_model_that_returns_nothing(self):
        class Silent(Subclassed):
            def call(self, inputs):
                super().call(inputs)

        live, text = recognised(fit(Silent(3), X, LABELS))
        assert live.rule == "refused-call"
        assert "a layer or function without return" in live.cause
        assert text == LabelsInInputsCrash()  # the same words: only the frames tell the one from the other

    def test_so_is_a_none_in_the_users_own_code(self):
        for seen in recognised(failure(lambda: tf.convert_to_tensor(None, "float32"))):
            assert (seen.rule, seen.said[:36]) == ("refused-call", "Attempt to convert a value (None) wi")
        *_, told = facts_of_text("ValueError: None values not supported.")
        assert told.rule == "refused-call"

    def test_the_words_of_keras_2_leave_more_open(self):
        # The wording before Keras 3, which these tests do not run on.
        text = (
            'Traceback (most recent call last):\n  File "train.py", line 31, in <module>\n    model.fit(batches)\n'
            "ValueError: No gradients provided for any variable: (['tf_bert/embeddings/weight:0'],). Provided "
            "`grads_and_vars` is ((None, <tf.Variable>),)."
        )
        (finding,) = diagnostics.explain(text).findings
        assert finding.rule == "labels-in-inputs"
        assert finding.message == NO_TARGET_FROM_TEXT


class TestShapesDiffer:
    @pytest.mark.parametrize(
        ("target", "outputs", "loss", "prediction_shape", "target_shape"),
        [
            (LABELS, 3, keras.losses.CategoricalCrossentropy(from_logits=True), (None, 3), (None,)),
            (np.eye(3)[LABELS], 3, None, (None, 3), (None, 3)),
            (np.eye(3)[LABELS], 2, keras.losses.CategoricalCrossentropy(from_logits=True), (None, 2), (None, 3)),
            (LABELS, 3, keras.losses.BinaryCrossentropy(from_logits=True), (None, 3), (None,)),
            (X[:, :2], 3, "mse", (None, 3), (None, 2)),
        ],
        ids=["indices", "one-hot", "outputs", "binary", "values"],
    )
    def test_of_keras_own_losses_in_a_graph(self, target, outputs, loss, prediction_shape, target_shape):
        error = fit(sequential(outputs), X, target, loss=loss)
        sparse = loss is None
        assert recognised(error) == (ShapesDiffer(prediction_shape, target_shape, sparse=sparse),) * 2

    def test_with_the_real_sizes_where_it_runs_eagerly(self):
        live, _ = recognised(fit(sequential(3), X, X[:, :2], loss="mse", mode=EAGER))
        assert live == ShapesDiffer((8, 3), (8, 2))

    def test_the_finding_in_full(self):
        error = fit(sequential(2), X, np.eye(3)[LABELS], loss=keras.losses.CategoricalCrossentropy())
        for finding in explained(error):
            assert finding.rule == "broadcast-loss"
            assert finding.message == (
                "The loss cannot compare a prediction of shape (None, 2) with a target of shape (None, "
                "3): there are 2 predictions and 3 targets per example. A loss needs one target per "
                "prediction, in a matching shape. Shapes that happen to broadcast raise no error, but then "
                "the loss compares the wrong pairs."
            )
            assert finding.fix == "give the last layer 3 outputs"
            assert finding.alternatives == ("if the target has the wrong shape, fix the code that creates it",)

    @pytest.mark.parametrize("mode", [GRAPH, EAGER], ids=["graph", "eager"])
    def test_in_a_loss_of_the_users_own_at_its_line(self, mode):
        def distance(y_true, y_pred):
            return tf.reduce_mean((y_pred - tf.cast(y_true, tf.float32)) ** 2)

        def entropy(y, p):
            return tf.nn.softmax_cross_entropy_with_logits(y, p)

        batch = None if mode is GRAPH else 8
        (live,) = diagnostics.explain(fit(sequential(3), X, X[:, :2], loss=distance, mode=mode)).findings
        assert f"a prediction of shape ({batch}, 3) with a target of shape ({batch}, 2)" in live.message
        assert live.where.function == "distance"
        for finding in explained(fit(sequential(3), X, np.eye(2)[LABELS % 2], loss=entropy, mode=mode)):
            assert finding.message.startswith(
                "The loss cannot compare a prediction of shape (8, 3) with a target of shape (8, 2)"
            )
            assert finding.where.function == "entropy"

    def test_a_lost_batch_axis(self):
        class Flat(layers.Layer):
            def call(self, x):
                return tf.reshape(x, [-1, 2])

        model = keras.Sequential([layers.Input((4,)), Flat(), layers.Dense(3)])
        for finding in explained(fit(model, X, LABELS)):
            assert "with a target of shape (8,): there are 16 predictions for 8 targets." in finding.message

    def test_shapes_that_clash_in_a_layer_or_in_the_weights_are_another_matter(self):
        class Sum(Subclassed):
            def call(self, inputs):
                return super().call(inputs) + tf.zeros((8, 5))

        for mode in (GRAPH, EAGER):
            batch = None if mode is GRAPH else 8
            sizes = OperandsMisfit("element-wise", 3, 5, 1, ((batch, 3), (8, 5)), library="keras")
            assert recognised(fit(Sum(3), X, LABELS, mode=mode)) == (sizes, sizes)
            rows = tf.data.Dataset.from_tensors((X, X[:, :3], np.ones(7, "float32")))
            weights = OperandsMisfit("element-wise", 8, 7, 0, ((8,), (7,)), library="keras")
            assert recognised(fit(sequential(3), rows, loss="mse", mode=mode)) == (weights, weights)


class TestNothingToDifferentiate:
    def test_a_loss_that_cuts_the_path(self):
        def hits(y_true, y_pred):
            return tf.reduce_mean(tf.cast(tf.argmax(y_pred, -1), tf.float32))

        error = fit(sequential(3), X, LABELS, loss=hits)
        assert recognised(error) == (NoPathToParameters(), NoPathToParameters())
        assert explained(error)[0].message == (
            "No variable got a gradient: the loss does not depend on any trainable variable. The graph is "
            "broken between the model's output and the loss."
        )


class TestHealthyText:
    @pytest.mark.parametrize(
        "line",
        [
            "Epoch 1/2\n8/8 - 0s 2ms/step - accuracy: 0.3750 - loss: 1.0986\n",
            "UserWarning: Your input ran out of data; interrupting training.",
            "W0000 node compile_loss/sparse_categorical_crossentropy: 'labels' among the inputs",
        ],
    )
    def test_a_log_before_an_error_changes_nothing(self, line):
        error = fit(sequential(3), X, LABELS[:4])
        for of in (error, line + "\n" + printed(error)):
            (finding,) = diagnostics.explain(of).findings
            assert finding.rule == "shape-mismatch"
            assert finding.message == f"x has {len(X)} rows and y has 4: fit needs one target for each row."

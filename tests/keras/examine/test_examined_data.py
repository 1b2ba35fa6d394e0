"""Data that `examine` cannot use, or takes in another way than one would think."""

import pytest

import diagnostics
from tests.keras.programs import (
    CLASSES,
    FEATURES,
    X,
    Y,
    keras,
    layers,
    mlp,
    rules,
    shuffled,
    stages,
    tf,
)


class TestData:
    def test_a_batch_of_four_parts(self):
        dataset = tf.data.Dataset.from_tensor_slices((X, X, X, Y)).batch(16)
        report = diagnostics.examine(mlp(), dataset)
        assert report.stages[0].status == "failed"
        assert report.stages[0].detail == (
            "A batch of the training data is a tuple of 4, and fit takes it for x, (x, y) or (x, y, "
            "sample_weight). Several inputs go together into one: ((x1, x2), y) or ({'name': x1, ...}, y)."
        )
        assert rules(report) == []

    @pytest.mark.parametrize(
        "data",
        [tf.data.Dataset.from_tensor_slices((X[:0], Y[:0])).batch(16), (X[:0], Y[:0])],
        ids=["tf.data", "arrays"],
    )
    def test_an_empty_one(self, data):
        report = diagnostics.examine(mlp(), data)
        assert report.stages[0].status == "failed"
        assert report.stages[0].detail == (
            "The training data is empty: it yields no batch. There is nothing to train on."
        )
        assert rules(report) == []

    def test_one_that_is_not_batched(self):
        report = diagnostics.examine(mlp(), tf.data.Dataset.from_tensor_slices((X, Y)))
        assert report.stages[1].detail == (
            "The data (a tf.data.Dataset) yields single rows, not batches. Batch it first: dataset.batch(32)."
        )
        assert rules(report) == []

    def test_one_without_a_target(self):
        report = diagnostics.examine(mlp(loss="mse"), X)
        assert report.stages[2].detail == (
            'The data has no target: a batch is its inputs alone, and the loss, loss="mse", compares the '
            "prediction with one. Give inputs and target as a pair: (x, y)."
        )
        assert report.crash is None

    def test_a_model_compiled_without_a_loss(self):
        model = keras.Sequential([layers.Input((FEATURES,)), layers.Dense(CLASSES)])
        model.compile("adam")
        report = diagnostics.examine(model, (X, Y))
        assert report.stages[2].detail == (
            "The model is compiled without a loss, and adds none itself, so there is nothing to train on. Give "
            "one: model.compile(optimizer=..., loss=...)."
        )
        assert report.crash is None

    def test_labels_among_the_inputs_of_a_model_with_a_loss_of_its_own(self):
        class OwnLoss(keras.Model):
            def __init__(self, inner):
                super().__init__()
                self.inner = inner

            def call(self, row):
                return self.inner(row["features"])

            def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
                loss = keras.losses.sparse_categorical_crossentropy(x["labels"], y_pred, from_logits=True)
                return keras.ops.mean(loss)

        model = OwnLoss(mlp())
        model.compile("adam")
        rows = tf.data.Dataset.from_tensor_slices({"features": X, "labels": Y}).batch(32)
        model(next(iter(rows)))  # which makes its weights
        report = diagnostics.examine(model, rows)
        assert rules(report) == []
        assert "labels-in-inputs" not in report.not_applicable

    def test_an_endless_one(self):
        report = diagnostics.examine(mlp(), shuffled().repeat())
        assert rules(report) == []
        assert report.stages[0].detail.startswith("unknown number of rows, the first ")
        assert stages(report)["one-batch overfit"] == "passed"

    def test_one_that_raises(self):
        def broken(features, label):
            tf.debugging.Assert(tf.reduce_sum(features) > 1e9, ["on purpose"])
            return features, label

        report = diagnostics.examine(mlp(), tf.data.Dataset.from_tensor_slices((X, Y)).map(broken).batch(16))
        assert report.stages[0].status == "failed"
        assert report.crash.exception == "InvalidArgumentError"
        assert "on purpose" in report.crash.message
        assert rules(report) == []

    def test_a_list_of_batches(self):
        report = diagnostics.examine(mlp(), [(X[:32], Y[:32]), (X[32:64], Y[32:64])])
        assert rules(report) == [], str(report)
        assert stages(report)["one-batch overfit"] == "passed"

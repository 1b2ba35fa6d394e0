"""Keras' metrics that compare class numbers, as a report of `examine` judges them."""

import numpy as np
import pytest

import diagnostics
from tests.keras.programs import X, keras, layers

CLASSES = (X[:, 0] > 0).astype("float32")[:, None]
ONE_HOT = keras.utils.to_categorical(X[:, :3].argmax(1), 3)


def report_on(metric, target=CLASSES, last="sigmoid", loss="binary_crossentropy"):
    model = keras.Sequential([layers.Input((X.shape[1],)), layers.Dense(target.shape[1], activation=last)])
    model.compile("adam", loss, metrics=metric if isinstance(metric, list) else [metric])
    report = diagnostics.examine(model, (X, target))
    assert report.faults == ()
    return {finding.rule: finding for finding in report.findings}


def test_accuracy_by_class_on_probabilities_is_named():
    finding = report_on(keras.metrics.Accuracy())["metric-on-logits"]
    assert finding.message == (
        "For predictions that are all correct, accuracy is 0 on probabilities and 1 on class labels. The "
        "evaluation loop passes probabilities, so the reported score would be wrong."
    )
    fix = 'metrics=["accuracy"]  # Keras chooses the accuracy that matches the outputs and the loss'
    assert finding.fix == fix


def test_overlap_of_class_numbers_on_one_hot_rows_is_named():
    found = report_on(keras.metrics.MeanIoU(3), ONE_HOT, "softmax", "categorical_crossentropy")
    assert "metric-on-logits" in found


class Rounded(keras.metrics.Accuracy):
    def update_state(self, y_true, y_pred, sample_weight=None):
        return super().update_state(y_true, keras.ops.round(y_pred), sample_weight)


@pytest.mark.parametrize(
    "metric",
    ["accuracy", keras.metrics.BinaryAccuracy(), keras.metrics.AUC(), Rounded(), keras.metrics.R2Score()],
    ids=["by name", "binary", "area", "rounded", "r2"],
)
def test_metrics_of_probabilities_are_not(metric):
    assert "metric-on-logits" not in report_on(metric)


def test_metric_of_one_hot_rows_is_not():
    metric = keras.metrics.OneHotMeanIoU(3)
    assert "metric-on-logits" not in report_on(metric, ONE_HOT, "softmax", "categorical_crossentropy")


def test_the_model_s_own_metric_is_left_as_it_is():
    metric = keras.metrics.Accuracy()
    report_on(metric)
    assert float(metric.result()) == 0
    assert np.asarray(metric.count) == 0


@pytest.mark.parametrize("metric", ["binary_accuracy", keras.metrics.BinaryAccuracy()], ids=["by name", "object"])
def test_an_accuracy_of_each_output_is_named_for_exclusive_classes(metric):
    finding = report_on(metric, ONE_HOT, "softmax", "categorical_crossentropy")["metric-on-logits"]
    assert finding.severity == "warning"
    assert finding.message == (
        "For predictions that are all wrong, binary_accuracy is 0.333: it scores each output separately, so a "
        "misclassified row still gets credit for every correctly predicted 0. The reported accuracy is far "
        "too high."
    )


def test_it_is_not_for_several_tags_or_two_classes():
    tags = (X[:, :3] > 0).astype("float32")
    assert "metric-on-logits" not in report_on("binary_accuracy", tags)
    assert "metric-on-logits" not in report_on("binary_accuracy", ONE_HOT)
    two = keras.utils.to_categorical(CLASSES[:, 0], 2)
    assert "metric-on-logits" not in report_on("binary_accuracy", two, "softmax", "categorical_crossentropy")


@pytest.mark.parametrize("other", ["accuracy", keras.metrics.CategoricalAccuracy()], ids=["by name", "object"])
def test_it_is_not_beside_an_accuracy_that_is_right(other):
    metrics = [other, keras.metrics.BinaryAccuracy()]
    assert "metric-on-logits" not in report_on(metrics, ONE_HOT, "softmax", "categorical_crossentropy")

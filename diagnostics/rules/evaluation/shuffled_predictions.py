"""See `ShuffledPredictions`."""

from __future__ import annotations

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts import data


class ShuffledPredictions(Rule):
    """Predictions for a shuffled dataset are compared with labels in a different order.

    ## What it does
    Under `diagnose run`, the rule looks for `tf.data` pipelines that reshuffle on every iteration. It checks
    whether the script passes such a pipeline to `predict`, loops over the pipeline again to collect the targets,
    and compares predictions with targets. For a shuffled sequence of batches (a `PyDataset`, or a generator from
    `ImageDataGenerator`), it checks whether the predictions are compared with the original labels, or with
    `classes`.

    ## Why it is bad
    `predict` returns the predictions in the order of its own pass over the data, and drops the targets. The second
    pass, in which the script collects the targets, has a different order. Predictions and labels then belong to
    different rows, so the accuracy is at chance level, however good the model is.

    ## Example
    ```python
    test = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1000).batch(32)
    predictions = model.predict(test).argmax(1)
    labels = np.concatenate([y for _, y in test])
    ```

    ## Instead
    ```python
    test = tf.data.Dataset.from_tensor_slices((x, y)).batch(32)
    predictions = model.predict(test).argmax(1)
    labels = np.concatenate([y for _, y in test])
    ```

    ## Thresholds
    None.

    ## Known problems
    Predictions that are stored in an attribute, or compared in a different function from the one that made them,
    are missed.

    ## Sources
    TensorFlow's documentation for `tf.data.Dataset.shuffle` (`reshuffle_each_iteration` is True by default);
    public questions about confusion matrices that disagree with `model.evaluate`.
    """

    severity = "warning"

    @check
    def from_passes(self, passes: data.ShuffledPredictions) -> Finding | None:
        """Report a pass of `predict` and one of the script, or labels in the order of their source."""
        if passes.sequence:
            return self.found(
                f"predict() got a {passes.sequence} that shuffles its rows, but the script compares the "
                "predictions with the labels in their original order. Predictions and labels belong to different "
                "rows, so any accuracy or confusion matrix computed from them is at chance level.",
                fix=(
                    "set shuffle=False for the evaluation data",
                    "collect the labels batch by batch, together with the inputs",
                ),
                evidence={"sequence": passes.sequence},
            )
        return self.found(
            "predict() got a dataset that is reshuffled on every pass, but the script compares the predictions "
            "with labels or other values from another pass, which has a different order. Any accuracy or "
            "confusion matrix computed from them is at chance level.",
            fix=(
                "do not shuffle the evaluation data",
                "collect predictions and labels in one pass: for x, y in test: predictions.append(model(x, "
                "training=False)); labels.append(y)",
            ),
            evidence={"passes": passes.passes},
        )

"""See `MetricOnLogits`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from diagnostics.engine.finding import Finding
from diagnostics.engine.message_rule import MessageRule
from diagnostics.engine.rule import NotApplicable, check
from diagnostics.facts.metrics import MetricLedger
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.facts.trials import MetricFacts
from diagnostics.facts.written import WrittenPattern, WrittenPatterns

if TYPE_CHECKING:
    from diagnostics.rules.shared.metric_values import Contradiction

ARGMAX = "predictions = logits.argmax(axis=-1) before the metric is computed"
THRESHOLD = "predictions = logits > 0"
KERAS = (
    'metrics=["accuracy"]  # Keras chooses the accuracy that matches the outputs and the loss',
    "use keras.metrics.BinaryAccuracy() for one output and CategoricalAccuracy() for one-hot targets",
    "use keras.metrics.BinaryIoU() for single-class masks and OneHotMeanIoU(n) for one-hot masks",
)
KERAS_OF_LOGITS = (
    "metrics=[keras.metrics.BinaryAccuracy(threshold=0.0)]  # for logits",
    'end the model in layers.Dense(1, activation="sigmoid"), and use a loss with from_logits=False',
)
HALF = "The outputs are logits, but the threshold is 0.5; a probability of 0.5 corresponds to a logit of 0."
ROUNDED = "The outputs are logits, but they are rounded: a logit of 2.9 becomes 3, which is not a class."
READ_AS_CLASSES = {  # mistakes that give the reported number
    "half": HALF,
    "half, batches": f"{HALF} In addition, the reported value is a mean of per-batch values.",
    "rounded": ROUNDED,
    "rounded, batches": f"{ROUNDED} In addition, the reported value is a mean of per-batch values.",
    "each output": "The metric scores each output separately, so a misclassified row still gets credit for every "
    "correctly predicted 0.",
}
CUT = "classes = (probabilities > 0.5).astype(int)"
CLASSES = "classes = probabilities.argmax(axis=-1)"
TWO_OUTPUTS = "use two outputs and a cross-entropy loss, so that the argmax is the class"
# The value of accuracy, F1 and similar metrics for predictions that are all correct, as a fraction or in percent.
PERFECT = (1.0, 100.0)
PROBABILITIES = ("sigmoid", "softmax")  # activations that end below 1


class MetricOnLogits(MessageRule):
    """A metric for class labels is computed on the model's logits.

    ## What it does
    Calls the metric function twice with predictions that are all correct: once as logits, in the format that the
    evaluation loop passes, and once as class labels. If the labels get a perfect score, but the logits fail or
    score lower, the conversion from logits to labels is missing.

    Under `diagnose run`, the rule also looks for these mistakes in the script:

    - an argmax over a single score per example
    - probabilities that are cast to integers
    - logits that are rounded or compared with 0.5, even though the binary cross entropy takes logits
    - probabilities passed to Keras' `Accuracy` or `MeanIoU`, which compare class indices
    - mutually exclusive classes passed to Keras' `BinaryAccuracy`
    - a number reported by Keras or a `Trainer` that results from rounding logits or comparing them with 0.5

    ## Why it is bad
    Accuracy compares labels with labels. If `accuracy_score` receives logits, scikit-learn raises an error after a
    whole epoch of training
    (`Classification metrics can't handle a mix of multiclass and continuous-multioutput targets`); a handwritten
    comparison broadcasts instead and returns a wrong number. The argmax of a single score is always 0, so the
    reported accuracy is the share of class 0 and never changes.

    ## Example
    ```python
    def compute_metrics(evaluation):
        logits, labels = evaluation
        return {"accuracy": accuracy_score(labels, logits)}
    ```

    ## Instead
    ```python
    def compute_metrics(evaluation):
        logits, labels = evaluation
        return {"accuracy": accuracy_score(labels, logits.argmax(axis=-1))}
    ```

    ## Thresholds
    None: a metric that gives 1 (or 100, in percent) for the true labels must give the same for logits that encode
    those labels. If Keras or a `Trainer` reports a number, the metric computed on logits must reproduce that
    number to the last digit, and it must differ from the correct one by at least 0.01. Some logits must also be at
    most 0.2 above 0.5, and others at most 0.2 below it.

    ## Known problems
    Metrics that fail even on class labels, and metrics for which lower is better, are not checked. The source is
    read only if exactly one model is trained and exactly one is used for predictions. If only a variable's name,
    such as `net`, suggests that it is a model, the finding is a note.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" ("Evaluating the model"); scikit-learn's
    documentation for `sklearn.metrics.accuracy_score`.
    """

    severity = "error"

    @check
    def from_metric(self, metric: MetricFacts) -> Finding | None:
        """Compare the metric's values for logits and for classes that are all correct."""
        if metric.on_classes is None:
            if metric.on_logits is None:
                raise NotApplicable("needs a metric that takes classes or logits")
            return None
        if metric.on_logits is None:
            error = f" ({metric.error.strip().splitlines()[0]})" if metric.error and metric.error.strip() else ""
            return self.found(
                f"The metric fails on logits{error} but works on class labels. The evaluation loop passes it "
                "logits, so training would crash at the first evaluation.",
                fix=ARGMAX,
                evidence={"on_logits": None, "on_classes": dict(metric.on_classes), "error": metric.error},
            )
        for name, score in metric.on_classes.items():
            got = metric.on_logits.get(name)
            if got is not None and any(math.isclose(score, top) for top in PERFECT) and got < score:
                return self.found(
                    f"For predictions that are all correct, {name} is {got:.3g} on {metric.answers} and "
                    f"{score:.3g} on class labels. The evaluation loop passes {metric.answers}, so the reported "
                    "score would be wrong.",
                    fix={"torch": ARGMAX, "keras": KERAS},
                    evidence={"on_logits": dict(metric.on_logits), "on_classes": dict(metric.on_classes)},
                )
        return next((self._of_wrong(name, score) for name, score in metric.on_wrong.items() if score > 0), None)

    def _of_wrong(self, name: str, score: float) -> Finding:
        return self.found(
            f"For predictions that are all wrong, {name} is {score:.3g}: it scores each output separately, so "
            "a misclassified row still gets credit for every correctly predicted 0. The reported "
            "accuracy is far too high.",
            fix={"keras": KERAS},
            evidence={"metric": name, "on_wrong": score},
            severity="warning",
        )

    @check
    def from_evaluations(self, ledger: MetricLedger) -> Finding | None:
        """Look for a reported number that comes out if logits are taken for probabilities."""
        # Not above: an exception is explained without NumPy.
        from diagnostics.rules.shared.metric_calls import evaluations_of
        from diagnostics.rules.shared.metric_values import contradictions

        evaluations = evaluations_of(ledger)
        if not evaluations:
            raise NotApplicable("needs the predictions and targets of an evaluation that reports a metric")
        found = (one for one in contradictions(evaluations) if one.mistake in READ_AS_CLASSES)
        return next((self._of_reported(one) for one in found), None)

    def _of_reported(self, one: Contradiction) -> Finding:
        return self.found(
            f"{one.name} is reported as {one.reported:.4g}, but the predictions for the same {one.rows:,} targets "
            f"give {one.recomputed:.4g}. {READ_AS_CLASSES[one.mistake or '']}",
            fix={"torch": THRESHOLD, "keras": KERAS_OF_LOGITS if one.mistake != "each output" else KERAS},
            evidence={
                "metric": one.name,
                "reported": one.reported,
                "recomputed": one.recomputed,
                "targets": one.rows,
            },
            where=one.where,
            severity="warning",
        )

    @check
    def from_source(
        self, written: WrittenPatterns, outputs: OutputFacts | None = None, loss: LossFacts | None = None
    ) -> Finding | None:
        """Look for an argmax over an axis of size 1, probabilities cast to integers, and logits against 0.5."""
        argmax, cast = written.first("constant_argmax"), written.first("truncated_probabilities")
        half = written.first("thresholded_logits")
        activation = None if outputs is None else outputs.last_activation
        if argmax is not None and outputs is not None and outputs.shape[1:] == (1,):
            return self._of_argmax(argmax, outputs.shape)
        if activation in PROBABILITIES:
            return None if cast is None else self._of_cast(cast, activation)
        logits = loss is not None and loss.kind == "binary_cross_entropy" and loss.reads == "logits"
        return self._of_half(half) if half is not None and logits else None

    def _of_argmax(self, argmax: WrittenPattern, answers: tuple[int, ...]) -> Finding:
        (of,) = argmax.names
        return self.found(
            f"The model returns one score per example (shape {answers}), but the script takes the argmax of "
            f"`{of}` over the axis of size 1. So the predicted class is 0 for every example, whatever the score.",
            fix=(THRESHOLD, "predictions = probabilities > 0.5  # if the model ends in a sigmoid", TWO_OUTPUTS),
            severity=argmax.severity or "warning",
            evidence={"of": of, "answers": list(answers)},
            where=argmax.where,
        )

    def _of_cast(self, cast: WrittenPattern, activation: str) -> Finding:
        (of,) = cast.names
        return self.found(
            f"The model ends in a {activation}, so it returns probabilities, but the script casts `{of}` to "
            "integers. A cast truncates the fraction: each probability below 1 becomes 0, whatever the model has "
            "learned.",
            fix=CUT if activation == "sigmoid" else CLASSES,
            severity=cast.severity or "warning",
            evidence={"of": of, "last_activation": activation},
            where=cast.where,
        )

    def _of_half(self, half: WrittenPattern) -> Finding:
        of, how = half.names
        use = (
            f"rounds `{of}`: a logit of 2.9 becomes 3, which is not a class"
            if how == "round"
            else (
                f"compares `{of}` with 0.5. A probability of 0.5 corresponds to a logit of 0, so only examples "
                "with a probability above 0.62 count as positive"
            )
        )
        return self.found(
            f"The loss interprets the model's outputs as logits, but the script {use}.",
            fix=("predictions = logits > 0", "predictions = torch.sigmoid(logits) > 0.5  # equivalent"),
            severity=half.severity or "warning",
            evidence={"of": of, "rounded": how == "round"},
            where=half.where,
        )

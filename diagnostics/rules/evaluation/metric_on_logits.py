"""See `MetricOnLogits`."""

from __future__ import annotations

import math

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import NotApplicable, Rule, check
from diagnostics.facts.crash import CrashFacts, MetricGotLogits
from diagnostics.facts.trials import MetricFacts

ARGMAX = "predictions = logits.argmax(axis=-1), before the metric is computed"
SIGN = "predictions = (logits > 0).astype(int), before the metric is computed"
# What accuracy, F1 and their like give to predictions that are all right, as a fraction or in percent.
PERFECT = (1.0, 100.0)


class MetricOnLogits(Rule):
    """A metric of class labels is fed with the model's raw scores.

    ## What it does
    Asks the metric function twice about predictions that are all correct: once as logits, highest at the
    true class, which is what the evaluation loop hands over; once as the classes themselves. Where the
    classes get a perfect score and the logits fail or get less, the step from the one to the other is
    missing.

    ## Why it is bad
    Accuracy compares labels with labels. Given rows of scores, scikit-learn raises after a whole epoch of
    training has been spent (`Classification metrics can't handle a mix of multiclass and
    continuous-multioutput targets`); a comparison written by hand broadcasts instead, and answers with a
    wrong number.

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
    None: a metric that gives 1 (or 100, in percent) to the true classes must give it to their logits.

    ## Known problems
    A metric that fails on classes too is not judged. Metrics for which less is better are not compared.
    Where `preprocess_logits_for_metrics` takes the argmax, the metric rightly gets classes; the question has
    to pass through it.

    ## Sources
    The Hugging Face course, chapter 8, "Debugging the training pipeline" ("Evaluating the model");
    scikit-learn's documentation of `sklearn.metrics.accuracy_score`.
    """

    severity = "error"

    @check
    def from_metric(self, metric: MetricFacts) -> Finding | None:
        """Compare the metric's two answers about predictions that are all correct."""
        if metric.on_classes is None:
            if metric.on_logits is None:
                raise NotApplicable("needs a metric that answers a question about classes or logits")
            return None
        if metric.on_logits is None:
            said = f" ({metric.error.strip().splitlines()[0]})" if metric.error and metric.error.strip() else ""
            return self.found(
                f"The metric fails on logits{said} but works on class labels, and the evaluation loop hands "
                "it logits: training would stop at the first evaluation.",
                fix=ARGMAX,
                evidence={"on_logits": None, "on_classes": dict(metric.on_classes), "error": metric.error},
            )
        for name, score in metric.on_classes.items():
            got = metric.on_logits.get(name)
            if got is not None and any(math.isclose(score, top) for top in PERFECT) and got < score:
                return self.found(
                    f"For predictions that are all correct, {name} is {got:.3g} when they come as logits "
                    f"and {score:.3g} when they come as classes. The evaluation loop hands over logits, so "
                    "the score would be wrong.",
                    fix=ARGMAX,
                    evidence={"on_logits": dict(metric.on_logits), "on_classes": dict(metric.on_classes)},
                )
        return None

    @check
    def from_crash(self, crash: CrashFacts, symptom: MetricGotLogits) -> Finding | None:
        """Say what the metric was given, as far as it is known."""
        shape = symptom.shape
        one_score = shape is not None and (len(shape) == 1 or shape[-1] == 1)
        if shape is None:
            given = "continuous scores"
        elif one_score:
            given = f"{shape[0]} scores, one an example"
        else:
            given = f"scores of shape {shape}, one for each of {shape[-1]} classes"
        return self.found(
            f"The metric compares class labels with class labels, and was given {given}. The model's raw "
            "outputs have to be turned into classes first.",
            fix=SIGN if one_score else ARGMAX,
            evidence={"shape": list(shape) if shape is not None else None},
            where=crash.where,
        )

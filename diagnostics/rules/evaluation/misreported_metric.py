"""See `MisreportedMetric`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Fix, NotApplicable, Rule, check
from diagnostics.facts.metrics import MetricLedger
from diagnostics.facts.written import ComparedPairs, WrittenPatterns
from diagnostics.rules.shared.metric_calls import (
    Accumulated,
    MeanOfBatches,
    NeverReset,
    Swapped,
    accumulated,
    evaluations_of,
    mean_of_batches,
    never_reset,
    swapped,
)
from diagnostics.rules.shared.metric_values import Contradiction, contradictions

MIN_ROWS = 32  # of a comparison in the script
MOST_KINDS = 100  # classes
GAP = 0.02  # between a reported accuracy and ours, where no mistake explains it

WHY: Final[Mapping[str, str]] = {
    "batches": "The reported value is a mean of per-batch values, which differs from the metric over all rows "
    "and changes with the batch size.",
    "not shifted": "Each output is compared with the token at its own position, but a causal language model "
    "predicts the next token.",
    "ignored counted": "Positions with label -100, which the loss ignores, are also counted.",
    "swapped": "Predictions and targets are swapped: the targets must be the first argument.",
    "no root": "The reported value is the mean squared error: its square root was never taken.",
    "broadcast": "Each prediction is compared with every target, because either the predictions or the targets "
    "have an extra axis of size 1.",
    "base": "The reported value is 2 ** loss, but the loss is in nats.",
    "no exponential": "The reported value is the loss itself, but the perplexity is the exponential of the loss.",
}
FIXES: Final[Mapping[str, Fix | Mapping[str, Fix]]] = {
    "batches": {
        "torch": "collect the predictions and targets of all batches, and compute the metric once",
        "keras": (
            "use a metric that accumulates over batches: keras.metrics.F1Score(), R2Score(), "
            "RootMeanSquaredError()",
            "compute the metric once from model.predict(x_val)",
        ),
    },
    "not shifted": "predictions, labels = predictions[:, :-1], labels[:, 1:]",
    "ignored counted": "counted = labels != -100; accuracy = (predictions == labels)[counted].mean()",
    "swapped": "pass the targets first: r2_score(y_true, y_pred), precision_score(y_true, y_pred), ...",
    "no root": "rmse = np.sqrt(mse)",
    "broadcast": "predictions = predictions.reshape(-1)  # before the comparison",
    "base": "perplexity = math.exp(loss)",
    "no exponential": "perplexity = math.exp(loss)",
}
COLLECT: Final[Fix] = (
    "collect the predictions and targets of all batches, and call the metric once after the loop",
    "use a stateful metric, such as one from torchmetrics or evaluate, which accumulates over batches",
)
RESET: Final[Fix] = "metric.reset_state()  # at the start of each epoch or evaluation"
EMPTY: Final[Fix] = "all_predictions, all_targets = [], []  # at the start of each evaluation"


class MisreportedMetric(Rule):
    """A reported metric is not what its name says.

    ## What it does
    Computes accuracy, F1, precision, recall, IoU, R², errors and perplexity from the predictions and targets of
    evaluations, and compares them with the numbers that a `Trainer` or Keras reported under the same names. If the
    numbers differ, the rule looks for a mistake that reproduces the reported number: a mean over batches, labels
    that were not shifted, ignored positions that were counted, swapped arguments, a missing square root, or a
    comparison of every prediction with every target.

    Under `diagnose run`, the rule also reads the `==` comparisons at the top level of the script whose results are
    summed or averaged. If, at the end of the script, one side has shape `(n, 1)` and the other has shape `(n,)`,
    each prediction was compared with every target.

    Under `diagnose run`, the rule also tracks the script's calls to scikit-learn's metrics. It looks for a
    separate call for each batch of an evaluation, for lists that grow from epoch to epoch, and for targets that
    are passed as predictions. In custom loops around a Keras optimizer, it reads the totals of metric objects that
    compute a mean (`Mean`, accuracies, errors) when the script calls `result()`.

    ## Why it is bad
    F1, R² and RMSE are not means over rows, so their mean over batches is a different number, which changes with
    the batch size. If the labels are not shifted, even a good language model has an accuracy close to 0. If lists
    are never cleared, or metric objects never reset, the metric of the last epoch still includes the predictions
    of the first.

    ## Example
    ```python
    for x, y in loader:
        scores.append(f1_score(y, model(x).argmax(1)))
    print("F1", np.mean(scores))
    ```

    ## Instead
    ```python
    for x, y in loader:
        predictions.append(model(x).argmax(1))
        targets.append(y)
    print("F1", f1_score(torch.cat(targets), torch.cat(predictions)))
    ```

    ## Thresholds
    There must be at least 32 targets that are not ignored. A reported number is accepted if it matches, to its
    last digit, one of several definitions of the metric, such as one with a different kind of averaging or a
    different threshold, or top-5 accuracy. A mistake is named only if it reproduces the reported number to its
    last digit in each of the latest evaluations. The reported number must also differ from the correct value by at
    least 0.01 (1% for error metrics and perplexity). For a mean over batches, it must differ by at least 0.02 (5%
    for error metrics). If an accuracy is wrong by at least 0.02 for no known reason, the finding is a note.

    For calls to scikit-learn's metrics, one of these conditions must hold:

    - Calls per batch: an evaluation has at least 3 batches, and the mean over the batches differs by at least 0.02
      (5% for error metrics) from the metric computed on all rows.
    - Growing lists: each call gets all rows of the previous call again, followed by the rows of one more
      evaluation with the same targets.
    - Swapped arguments: the second argument stays the same from call to call, while the first argument changes.

    A Keras metric object must be read at least 3 times, with steps by the same optimizer in between. It must never
    be reset, its number of samples must grow by the same amount each time, and its value must differ by at least
    1% from the mean of the latest samples. In addition, the object must get its samples only outside training
    steps, or another metric object, which is read at least as often, must be reset between reads. The object is
    not reported if another metric of the same kind gets the same samples and is reset: the first one then covers
    the whole run on purpose.

    For a metric object, the finding is a note in three cases:

    - It is a `Mean` over evaluations, and no other metric is reset.
    - It is computed in training, and only evaluation metrics are reset.
    - It is computed in training, and another metric of the same kind is reset after a different number of samples.

    A comparison in the script must have at least 32 rows and at most 100 different values. The share of
    predictions that equal their own target must be at least 0.02 higher than the share of equal pairs when every
    prediction is paired with every target. The first share must also be less than 1, because a script may compare
    labels with themselves to find the pairs with the same label.

    ## Known problems
    Other numbers that the script prints, metrics under other names, and metrics of models with several outputs are
    not checked. Only metric objects that compute a mean are checked, not `AUC`, `Precision` or `MeanIoU`. A metric
    over a stream, where each part is first predicted and then trained on, is reported although it is meant to
    accumulate. Comparisons in functions are not checked, because their values are gone at the end of the script.

    ## Sources
    Forman and Scholz, "Apples-to-apples in cross-validation studies" (2010), on averaging F1; the release notes
    of Keras 2.0, which removed precision, recall and F1 because they were computed per batch; forum questions
    about the token accuracy of causal language models.
    """

    severity = "warning"

    @check
    def from_evaluations(self, ledger: MetricLedger) -> Finding | None:
        """Compare reported metrics with those of the predictions."""
        evaluations = evaluations_of(ledger)
        if not evaluations:
            raise NotApplicable("needs the predictions and targets of an evaluation that reports a metric")
        found = [one for one in contradictions(evaluations) if one.mistake in WHY or _is_unexplained(one)]
        found.sort(key=lambda one: one.mistake is None)
        return self._of_contradiction(found[0]) if found else None

    @check
    def from_calls(self, ledger: MetricLedger) -> Finding | None:
        """Look for a metric of each batch, and for rows that are never dropped."""
        if not ledger.series:
            raise NotApplicable("needs a metric that is called repeatedly from the same line")
        found: list[Finding] = [
            *(self._of_growing(growing) for series in ledger.series if (growing := accumulated(series))),
            *(self._of_swapped(turned) for series in ledger.series if (turned := swapped(series))),
            *(self._of_mean(mean) for series in ledger.series if (mean := mean_of_batches(series))),
        ]
        return found[0] if found else None

    @check
    def from_states(self, ledger: MetricLedger) -> Finding | None:
        """Look for a metric object that is never reset between evaluations."""
        if not ledger.states:
            raise NotApplicable("needs a metric object that is read repeatedly during training")
        kept = [one for state in ledger.states if (one := never_reset(state, ledger.states))]
        kept.sort(key=lambda one: not one.is_certain)
        return self._of_kept(kept[0]) if kept else None

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Look for a comparison in the script that compares each prediction with every target."""
        if not written.pairs:
            raise NotApplicable("needs a comparison of a column with a vector in the script")
        return next((self._of_pairs(one) for one in written.pairs if _is_misreported(one)), None)

    def _of_pairs(self, one: ComparedPairs) -> Finding:
        (left, right), (first, second) = one.names, one.shapes
        rows = max(first[0], second[0])
        return self.found(
            f"`{left} == {right}` compares shape {first} with shape {second}, which broadcasts to "
            f"{rows:,} x {rows:,} values, and all of them are counted. {one.of_pairs:.1%} of these pairs are "
            f"equal, but {one.of_rows:.1%} of the {rows:,} rows are. {WHY['broadcast']}",
            fix=f"{left}.reshape(-1) == {right}.reshape(-1)",
            evidence={
                "shapes": [list(first), list(second)],
                "reported": one.of_pairs,
                "recomputed": one.of_rows,
                "mistake": "broadcast",
            },
            where=one.where,
        )

    def _of_contradiction(self, one: Contradiction) -> Finding:
        message = (
            f"{one.name} is reported as {one.reported:.4g}, but the predictions for the same {one.rows:,} targets "
            f"give {one.recomputed:.4g}."
        )
        evidence = {
            "metric": one.name,
            "reported": one.reported,
            "recomputed": one.recomputed,
            "targets": one.rows,
            "mistake": one.mistake,
        }
        if one.mistake is None:
            return self.found(
                f"{message} None of the common mistakes that were checked explains the difference.",
                fix=f"compute {one.name} once over all predictions, and compare it with the reported value",
                evidence=evidence,
                severity="note",
            )
        fix = FIXES[one.mistake]
        return self.found(f"{message} {WHY[one.mistake]}", fix=fix, evidence=evidence, where=one.where)

    def _of_growing(self, one: Accumulated) -> Finding:
        numbers = (
            ""
            if one.value is None or one.latest is None
            else f" The metric returns {one.value:.4g}; the latest evaluation alone gives {one.latest:.4g}."
        )
        return self.found(
            f"{one.call.metric} gets {len(one.call.truth):,} rows: the {one.rows:,} rows of one evaluation, "
            f"{one.times} times over. The list of predictions still holds those of earlier evaluations.{numbers}",
            fix=EMPTY,
            evidence={
                "metric": one.call.metric,
                "rows": one.rows,
                "times": one.times,
                "reported": one.value,
                "recomputed": one.latest,
            },
            where=one.call.where,
        )

    def _of_kept(self, one: NeverReset) -> Finding:
        kind, samples, reads = one.state.kind, one.state.counts[-1], len(one.state.counts)
        return self.found(
            f"{kind} was read {reads} times with training steps in between, but never reset. Its latest value, "
            f"{one.value:.4g}, is the mean over {samples:,.0f} samples, {one.rows:,.0f} per read, so it "
            f"includes results from earlier weights. The latest {one.rows:,.0f} samples alone give "
            f"{one.latest:.4g}.",
            fix={"keras": RESET},
            evidence={
                "metric": kind,
                "name": one.state.name,
                "rows": one.rows,
                "times": reads,
                "reported": one.value,
                "recomputed": one.latest,
            },
            severity=None if one.is_certain else "note",
            where=one.state.where,
        )

    def _of_swapped(self, one: Swapped) -> Finding:
        metric = one.call.metric
        return self.found(
            f"{metric} was called {one.calls} times with training steps in between. The first argument, which "
            "should be the targets, changed, while the second, which should be the predictions, stayed the same: "
            f"predictions and targets are swapped. {metric} returned {one.value:.4g}; with the targets first, it "
            f"would have returned {one.turned:.4g}.",
            fix=f"{metric}(y_true, y_pred)",
            evidence={"metric": metric, "calls": one.calls, "reported": one.value, "recomputed": one.turned},
            where=one.call.where,
        )

    def _of_mean(self, one: MeanOfBatches) -> Finding:
        return self.found(
            f"{one.call.metric} is called once for each of {one.batches} batches, and the mean of these "
            f"{one.batches} values is {one.mean:.4g}. Called once on all {one.rows:,} rows, it returns "
            f"{one.whole:.4g}. {one.call.metric} is not an average over rows, so the mean over batches changes "
            "with the batch size.",
            fix=COLLECT,
            evidence={
                "metric": one.call.metric,
                "batches": one.batches,
                "rows": one.rows,
                "mean": one.mean,
                "recomputed": one.whole,
            },
            where=one.call.where,
        )


def _is_misreported(one: ComparedPairs) -> bool:
    """Whether rows agree more often than pairs, but not always, as labels compared with themselves do."""
    rows = max(one.shapes[0][0], one.shapes[1][0])
    return rows >= MIN_ROWS and one.kinds <= MOST_KINDS and one.of_pairs + GAP <= one.of_rows < 1


def _is_unexplained(one: Contradiction) -> bool:
    """Whether an accuracy differs for a reason that we do not know."""
    gap = abs(one.reported - one.recomputed) / (100 if one.reported > 1 else 1)
    return one.mistake is None and one.metric == "accuracy" and one.is_plain and gap >= GAP

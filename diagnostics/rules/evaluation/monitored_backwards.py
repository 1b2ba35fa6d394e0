"""See `MonitoredBackwards`."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.calls import Monitor, MonitorFacts
from diagnostics.facts.written import WrittenPatterns

FALLING = ("mse", "mae", "mape", "msle", "rmse", "perplexity", "wer", "cer")
RISING = ("acc", "accuracy", "auc", "precision", "recall", "f1", "f1_score", "r2_score")

FEWEST = 3  # least number of epochs
LARGE, GAIN = 0.1, 0.01  # of the first value: a large min_delta; the gain of each epoch


class MonitoredBackwards(Rule):
    """The highest loss or the lowest accuracy is taken as the best, or every improvement is judged too small.

    ## What it does
    Compares the direction of each callback passed to Keras' `fit` with the metric that it monitors: a loss or an
    error improves when it falls, an accuracy when it rises. If a `Trainer` loads the best model at the end or
    stops early, the rule compares `metric_for_best_model` with `greater_is_better`, which is True by default for
    all names that do not end in `loss`. If Keras' `EarlyStopping` ended training, the rule checks whether each of
    the last epochs was better than the one before, but by less than `min_delta`.

    Under `diagnose run`, the rule also searches the script for a wrong comparison with the best result so far,
    such as `if val_loss > best_loss: best_loss = val_loss`, and checks Lightning's `ModelCheckpoint` and
    `EarlyStopping`, whose `mode` is "min" by default.

    ## Why it is bad
    Every epoch that improves the metric is counted as an epoch without progress. `EarlyStopping` ends training
    while the model is still improving, and restores the weights of the worst epoch. `ModelCheckpoint` saves the
    weights of the worst epoch too, and `ReduceLROnPlateau` cuts the learning rate because the loss falls.

    ## Example
    ```python
    keras.callbacks.EarlyStopping(monitor="val_loss", mode="max", restore_best_weights=True)
    ```

    ## Instead
    ```python
    keras.callbacks.EarlyStopping(monitor="val_loss", mode="min", restore_best_weights=True)
    ```

    ## Thresholds
    A `min_delta` is too large if it is at least 10% of the first value of the metric, and no epoch was counted as
    progress, even though each epoch improved on the previous one by at least 1% of that first value.

    The direction is checked only for metrics with well-known names: names that end in `loss` or `error`, a few
    regression metrics, and accuracy, AUC, precision, recall and the like. In the source, the variable for the best
    result so far must have `best` in its name (or `min` for a loss, `max` for an accuracy). A finding from the
    source is a note, unless the value is computed by a loss function and the branch saves the weights or resets a
    counter.

    ## Known problems
    Custom metrics are not checked. A script that deliberately looks for the worst epoch is wrongly reported.

    ## Sources
    Keras' documentation for `EarlyStopping` ("mode"); the documentation for `transformers.TrainingArguments`
    ("greater_is_better") and Lightning's `ModelCheckpoint` ("mode").
    """

    severity = "warning"
    causes = NO_LEARNING

    @check
    def from_monitors(self, monitors: MonitorFacts) -> Finding | None:
        """Look for a direction that contradicts the name."""
        for monitor in monitors.monitors:
            better = _rises(monitor.monitored)
            if monitor.by_hand and better is not None and better != monitor.waits_for_rise:
                return self._of(monitor, better)
        return next((self._too_large(one) for one in monitors.monitors if _waits_through_progress(one)), None)

    @check
    def from_source(self, written: WrittenPatterns) -> Finding | None:
        """Take the first comparison, or the first callback, in the wrong direction."""
        for mode in written.of("monitored_modes"):
            callback, monitored, progress = mode.names
            monitor, better = Monitor(callback, monitored, progress == "rise"), _rises(monitored)
            if better is not None and better != monitor.waits_for_rise:
                return replace(self._of(monitor, better), where=mode.where)
        one = written.first("inverted_best")
        if one is None:
            return None
        value, best, progress = one.names
        rises = progress == "rise"
        right, kept = ("<", "highest") if rises else (">", "lowest")
        return self.found(
            f"`{best}` is set to `{value}` whenever `{value}` is {'higher' if rises else 'lower'}, so it keeps "
            f"the {kept} value so far, which is the worst. The script therefore saves the wrong weights "
            "and treats the wrong epochs as improvements.",
            fix=f"if {value} {right} {best}: {best} = {value}",
            evidence={"value": value, "best": best, "rises": rises},
            where=one.where,
            severity=one.severity,
        )

    def _of_trainer(self, monitor: Monitor, rises: bool) -> Finding:
        named = f'metric_for_best_model="{monitor.monitored}"'
        return self.found(
            f"The Trainer selects its best model using {named} with greater_is_better={not rises}, so it treats "
            f"{'a decrease' if rises else 'an increase'} as an improvement. At the end, the Trainer loads the "
            "worst checkpoint as the best one, and early stopping treats better epochs as epochs without "
            "improvement.",
            fix=f"{monitor.callback}({named}, greater_is_better={rises})",
            evidence={
                "callback": monitor.callback,
                "monitored": monitor.monitored,
                "greater_is_better": not rises,
            },
        )

    def _too_large(self, monitor: Monitor) -> Finding:
        first, last = monitor.values[0], monitor.values[-1]
        return self.found(
            f"{monitor.callback} ended training after epoch {monitor.stopped_after}, although "
            f"{monitor.monitored} improved in each epoch, from {first:.4g} to {last:.4g}. With "
            f"min_delta={monitor.least_gain:g}, an improvement counts only if it exceeds {monitor.least_gain:g} "
            "(in the unit of the metric), and no epoch improved that much.",
            fix=f'{monitor.callback}(monitor="{monitor.monitored}", min_delta=1e-4, patience=10)',
            evidence={
                "callback": monitor.callback,
                "monitored": monitor.monitored,
                "min_delta": monitor.least_gain,
                "values": list(monitor.values),
                "stopped_after": monitor.stopped_after,
            },
        )

    def _of(self, monitor: Monitor, rises: bool) -> Finding:
        if monitor.trainer:
            return self._of_trainer(monitor, rises)
        mode, right = ("min", "max") if rises else ("max", "min")
        course = ""
        if len(monitor.values) > 1:
            first, last = monitor.values[0], monitor.values[-1]
            epochs = f"From epoch 1 to {len(monitor.values)}"
            course = f" {epochs}, {monitor.monitored} went from {first:.4g} to {last:.4g}."
        return self.found(
            f'{monitor.callback} watches {monitor.monitored} with mode="{mode}", so it treats '
            f"{'a decrease' if rises else 'an increase'} as an improvement.{course} {_effect(monitor)}",
            fix=f'{monitor.callback}(monitor="{monitor.monitored}", mode="{right}")',
            evidence={
                "callback": monitor.callback,
                "monitored": monitor.monitored,
                "mode": mode,
                "values": list(monitor.values),
                "stopped_after": monitor.stopped_after,
                "restored": monitor.restored,
            },
        )


def _waits_through_progress(monitor: Monitor) -> bool:
    """Return whether each epoch gained something, but never enough."""
    values, sign = monitor.values, 1 if monitor.waits_for_rise else -1
    if monitor.stopped_after is None or len(values) < FEWEST or monitor.stopped_after != len(values):
        return False
    gains = [sign * (after - before) for before, after in pairwise(values)]
    whole = sign * (values[-1] - values[0])
    large = monitor.least_gain >= LARGE * abs(values[0])
    return large and whole < monitor.least_gain and all(g >= GAIN * abs(values[0]) for g in gains)


def _effect(monitor: Monitor) -> str:
    if monitor.stopped_after is not None:
        restored = "" if monitor.restored is None else f" and restored the weights of epoch {monitor.restored}"
        return f"The callback stopped training after epoch {monitor.stopped_after}{restored}."
    if monitor.restored is not None:
        return f"The callback restored the weights of epoch {monitor.restored}."
    if monitor.callback == "ModelCheckpoint":
        return "The callback saves the worst epoch as the best one."
    if monitor.callback == "ReduceLROnPlateau":
        return "The callback lowers the learning rate after the epochs in which the metric got better."
    return "Better epochs count as epochs without improvement."


def _rises(monitored: str) -> bool | None:
    """Return whether higher is better; None if the name does not show it."""
    name = re.sub(r"\W", "_", monitored.lower()).removeprefix("val_").removeprefix("eval_")
    last = name.rpartition("_")[2]
    if "neg" in name:
        return None
    if last in ("loss", "error") or name in FALLING or last in FALLING:
        return False
    return True if name in RISING or last in RISING else None

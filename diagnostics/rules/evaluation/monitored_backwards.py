"""See `MonitoredBackwards`."""

from __future__ import annotations

from diagnostics.engine.causality import NO_LEARNING
from diagnostics.engine.finding import Finding
from diagnostics.engine.rule import Rule, check
from diagnostics.facts.calls import Monitor, MonitorFacts

FALLING = ("mse", "mae", "mape", "msle", "rmse", "perplexity")
RISING = ("acc", "accuracy", "auc", "precision", "recall", "f1", "f1_score", "r2_score")


class MonitoredBackwards(Rule):
    """A callback waits for a loss to rise, or for an accuracy to fall.

    ## What it does
    Compares the direction in which each callback of Keras' `fit` looks for progress with what it watches: a loss
    or an error is better when it falls, an accuracy when it rises.

    ## Why it is bad
    Every epoch that gets better counts as one without progress. `EarlyStopping` ends the training while it still
    improves, and restores the weights of the worst epoch as the best; `ModelCheckpoint` saves that epoch;
    `ReduceLROnPlateau` cuts the learning rate because the loss falls.

    ## Example
    ```python
    keras.callbacks.EarlyStopping(monitor="val_loss", mode="max", restore_best_weights=True)
    ```

    ## Instead
    ```python
    keras.callbacks.EarlyStopping(monitor="val_loss", mode="min", restore_best_weights=True)
    ```

    ## Thresholds
    None. Only well-known names are judged: those that end in `loss` or `error`, a few metrics of regression, and
    accuracy, AUC, precision, recall and their like.

    ## Known problems
    A metric of the user's own is not judged, whatever its direction. Whoever looks for the worst epoch on purpose
    is reported.

    ## Sources
    Keras' documentation of `EarlyStopping` ("mode").
    """

    severity = "warning"
    causes = NO_LEARNING

    @check
    def from_monitors(self, monitors: MonitorFacts) -> Finding | None:
        """Look for a direction that contradicts the name."""
        for monitor in monitors.monitors:
            better = _rises(monitor.monitored)
            if better is not None and better != monitor.waits_for_rise:
                return self._of(monitor, better)
        return None

    def _of(self, monitor: Monitor, rises: bool) -> Finding:
        mode, right = ("min", "max") if rises else ("max", "min")
        course = ""
        if len(monitor.values) > 1:
            first, last = monitor.values[0], monitor.values[-1]
            course = f" From epoch 1 to {len(monitor.values)} it went from {first:.4g} to {last:.4g}."
        return self.found(
            f'{monitor.callback} watches {monitor.monitored} with mode="{mode}", so it takes '
            f"{'a fall' if rises else 'a rise'} for progress.{course} {_effect(monitor)}",
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


def _effect(monitor: Monitor) -> str:
    if monitor.stopped_after is not None:
        restored = "" if monitor.restored is None else f" and restored the weights of epoch {monitor.restored}"
        return f"It stopped the training after epoch {monitor.stopped_after}{restored}."
    if monitor.restored is not None:
        return f"It restored the weights of epoch {monitor.restored}."
    if monitor.callback == "ModelCheckpoint":
        return "The epoch that it saves as the best is the worst."
    if monitor.callback == "ReduceLROnPlateau":
        return "It cuts the learning rate after epochs that were better."
    return "Epochs that are better count as epochs without progress."


def _rises(monitored: str) -> bool | None:
    """Whether more is better; None where the name does not tell."""
    name = monitored.lower().removeprefix("val_")
    last = name.rpartition("_")[2]
    if "neg" in name:
        return None
    if last in ("loss", "error") or name in FALLING or last in FALLING:
        return False
    return True if name in RISING or last in RISING else None

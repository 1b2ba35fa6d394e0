"""Describes the callbacks of a `fit` that look for progress in a metric."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import keras

from diagnostics.collectors.keras.fit_probes import FitProbe
from diagnostics.facts.calls import Monitor, MonitorFacts

KINDS = (keras.callbacks.EarlyStopping, keras.callbacks.ModelCheckpoint, keras.callbacks.ReduceLROnPlateau)


class Monitors(FitProbe):
    """Describes the callbacks once the training is over."""

    def facts(self) -> Iterable[MonitorFacts]:
        """Return nothing if none knows its direction."""
        callbacks: Any = self.subject.given["callbacks"]
        history: dict[str, list[Any]] = getattr(getattr(self.subject.model, "history", None), "history", {})
        monitors = tuple(
            _monitor(one, tuple(map(float, history.get(one.monitor, ()))))
            for one in getattr(callbacks, "callbacks", callbacks)
            if isinstance(one, KINDS) and _rises(one) is not None and _matters(one)
        )
        if monitors:
            yield MonitorFacts(monitors)


def _rises(callback: Any) -> bool | None:
    """Return whether a callback waits for a rise; None if it was told nothing and has not found out."""
    if callback.mode in ("min", "max"):
        return bool(callback.mode == "max")
    found = getattr(callback, "monitor_op", None)
    known = {keras.ops.greater: True, keras.ops.less: False}
    return known.get(found) if isinstance(callback, keras.callbacks.EarlyStopping) else None


def _matters(callback: Any) -> bool:
    return not isinstance(callback, keras.callbacks.ModelCheckpoint) or bool(callback.save_best_only)


def _monitor(callback: Any, values: tuple[float, ...]) -> Monitor:
    stopped, restored = None, None
    if isinstance(callback, keras.callbacks.EarlyStopping):
        stopped = callback.stopped_epoch + 1 if callback.stopped_epoch > 0 else None
        restored = callback.best_epoch + 1 if callback.restore_best_weights and values else None
    name = next(kind.__name__ for kind in KINDS if isinstance(callback, kind))
    gain = abs(float(getattr(callback, "min_delta", 0.0) or 0.0))
    by_hand = callback.mode in ("min", "max")
    return Monitor(
        callback=name,
        monitored=callback.monitor,
        waits_for_rise=bool(_rises(callback)),
        values=values,
        stopped_after=stopped,
        restored=restored,
        by_hand=by_hand,
        least_gain=gain,
    )

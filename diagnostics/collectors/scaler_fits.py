"""Records what each scaler of scikit-learn was fitted to, and which rows it made."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.array import Array
from diagnostics.facts.data import ScaledRows, ScalerFits, row_numbers
from diagnostics.taps import sklearn as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

MAX_FITS = 16
MAX_ROWS = 200_000  # of one fit
MAX_COLUMNS = 64


class ScalerRecorder:
    """Keeps a number for each row that a scaler made, by the fit that it was made with.

    Args:
        attempt: runs the work, and keeps its faults out of the script.
    """

    def __init__(self, attempt: Callable[..., Any]) -> None:
        self._attempt = attempt
        self._latest: IdentityMap[Any, dict[str, Any]] = IdentityMap()  # by scaler
        self._fits: list[dict[str, Any]] = []

    def listen(self) -> Unsubscribe:
        """Observe the scalers from now on; return what ends it."""
        return subscribe(
            self._attempt, (taps.scaler_fit.after, self._fitted), (taps.scaler_transform.after, self._scaled)
        )

    def facts(self) -> ScalerFits | None:
        """Return the fits that made rows; None if there are fewer than two."""
        used = [fit for fit in self._fits if fit["numbers"]]
        if len(used) < 2:
            return None
        return ScalerFits(tuple(ScaledRows(**fit | {"numbers": np.concatenate(fit["numbers"])}) for fit in used))

    def _fitted(self, _result: Any, scaler: Any, *_: Any, **__: Any) -> None:
        self._latest.pop(scaler, None)
        factor, offset = _affine(scaler)
        if len(self._fits) < MAX_FITS and 1 < len(factor) <= MAX_COLUMNS:
            known = {"kind": type(scaler).__name__, "factor": factor, "offset": offset, "where": script_line()}
            self._latest[scaler] = fit = {**known, "numbers": []}
            self._fits.append(fit)

    def _scaled(self, result: Any, scaler: Any, *_: Any, **__: Any) -> None:
        fit = self._latest.get(scaler)
        if fit is None:
            return
        rows = np.asarray(result)  # of a data frame, too
        there = sum(map(len, fit["numbers"]))
        if rows.ndim == 2 and rows.dtype.kind == "f" and there < MAX_ROWS:
            fit["numbers"].append(row_numbers(rows[: MAX_ROWS - there]))


def _affine(scaler: Any) -> tuple[Array, Array]:
    """Return factor and offset (columns,) of a fitted scaler: it turns x into x * factor + offset."""
    scale = getattr(scaler, "scale_", None)
    scale = np.ones(scaler.n_features_in_) if scale is None else np.asarray(scale, np.float64)
    if type(scaler).__name__ == "MinMaxScaler":
        return scale, np.asarray(scaler.min_, np.float64)
    center = getattr(scaler, "mean_", getattr(scaler, "center_", None))
    center = np.zeros(len(scale)) if center is None else np.asarray(center, np.float64)
    return 1 / scale, -center / scale

"""Records what each scaler of scikit-learn was fitted to, and which rows it made."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.array import Array
from diagnostics.facts.data import ScaledRows, ScalerFits, row_numbers
from diagnostics.facts.where import Where
from diagnostics.taps import sklearn as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

MAX_FITS = 16
MAX_ROWS = 200_000  # of one fit
MAX_COLUMNS = 64


@dataclass
class _Fit:
    """One fit of a scaler; see `ScaledRows`."""

    kind: str
    factor: Array
    offset: Array
    where: Where | None
    numbers: list[Array] = field(default_factory=list)

    @property
    def rows(self) -> int:
        return sum(map(len, self.numbers))

    def fact(self) -> ScaledRows:
        return ScaledRows(self.kind, self.factor, self.offset, np.concatenate(self.numbers), self.where)


class ScalerRecorder:
    """Keeps a number for each row that a scaler made, by the fit that it was made with.

    Args:
        attempt: runs the work, and keeps its faults out of the script.
    """

    def __init__(self, attempt: Callable[..., Any]) -> None:
        self._attempt = attempt
        self._latest: IdentityMap[Any, _Fit] = IdentityMap()  # by scaler
        self._fits: list[_Fit] = []

    def listen(self) -> Unsubscribe:
        """Observe the scalers from now on; return what ends it."""
        return subscribe(
            self._attempt, (taps.scaler_fit.after, self._fitted), (taps.scaler_transform.after, self._scaled)
        )

    def facts(self) -> ScalerFits | None:
        """Return the fits that made rows; None if there are fewer than two."""
        used = tuple(fit.fact() for fit in self._fits if fit.numbers)
        return ScalerFits(used) if len(used) > 1 else None

    def _fitted(self, _result: Any, scaler: Any, *_: Any, **__: Any) -> None:
        self._latest.pop(scaler, None)
        factor, offset = _affine(scaler)
        if len(self._fits) < MAX_FITS and 1 < len(factor) <= MAX_COLUMNS:
            self._fits.append(_Fit(type(scaler).__name__, factor, offset, script_line()))
            self._latest[scaler] = self._fits[-1]

    def _scaled(self, result: Any, scaler: Any, *_: Any, **__: Any) -> None:
        fit = self._latest.get(scaler)
        if fit is None:
            return
        rows = np.asarray(result)  # of a data frame, too
        if rows.ndim == 2 and rows.dtype.kind == "f" and fit.rows < MAX_ROWS:
            fit.numbers.append(row_numbers(rows[: MAX_ROWS - fit.rows]))


def _affine(scaler: Any) -> tuple[Array, Array]:
    """Return factor and offset (columns,) of a fitted scaler: it turns x into x * factor + offset."""
    scale = getattr(scaler, "scale_", None)
    scale = np.ones(scaler.n_features_in_) if scale is None else np.asarray(scale, np.float64)
    if type(scaler).__name__ == "MinMaxScaler":
        return scale, np.asarray(scaler.min_, np.float64)
    center = getattr(scaler, "mean_", getattr(scaler, "center_", None))
    center = np.zeros(len(scale)) if center is None else np.asarray(center, np.float64)
    return 1 / scale, -center / scale

"""Records fits: encoders fitted again, with other codes for the same values, and scalers with their rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from diagnostics.collectors.isolation.identity import IdentityMap
from diagnostics.collectors.shared.script_line import script_line
from diagnostics.facts.array import Array
from diagnostics.facts.data import RefittedEncoder, ScaledRows, ScalerFits, row_numbers
from diagnostics.facts.where import Where
from diagnostics.taps import keras as keras_taps
from diagnostics.taps import sklearn as taps
from diagnostics.taps.tap import Unsubscribe, subscribe

MODULE = "sklearn.preprocessing"
MOST_ENCODERS = 256
MOST_FITS = 3  # of one column: training, validation and test; with more, each group has codes of its own
MOST_VALUES = 100_000
MAX_FITS = 16
MAX_ROWS = 200_000  # of one fit
MAX_COLUMNS = 64


@dataclass
class _Fit:
    """One fit of an encoder.

    Attributes:
        values: by the name of each column, in the order of their codes.
        where: the line of the script.
        begun: trainings that had begun before.
        used: whether anything was encoded with it.
    """

    values: dict[str, Array]
    where: Where | None
    begun: int
    used: bool = False


class EncoderFits:
    """Keeps what each encoder has learned from columns that have a name.

    Args:
        attempt: runs the work, and keeps its faults out of the script.
        begun: returns how many trainings have begun.
    """

    def __init__(self, attempt: Callable[..., Any], begun: Callable[[], int]) -> None:
        self._attempt, self._begun = attempt, begun
        self._of_encoder: IdentityMap[Any, list[_Fit]] = IdentityMap()
        self._all: list[tuple[str, list[_Fit]]] = []  # also of encoders that are gone

    def listen_to_keras(self) -> Unsubscribe:
        """Observe the text vectorizers of Keras from now on; return what ends it."""
        return subscribe(
            self._attempt,
            (keras_taps.vectorizer_adapt.after, self._fitted),
            (keras_taps.vectorizer_call.after, self._used),
        )

    def listen(self) -> Unsubscribe:
        """Observe the encoders of scikit-learn from now on; return what ends it."""
        return subscribe(
            self._attempt,
            (taps.encoder_fit.after, self._fitted),
            (taps.encoder_fit_transform.after, self._fitted_and_used),
            (taps.encoder_transform.after, self._used),
        )

    def facts(self) -> Iterator[RefittedEncoder]:
        """Yield the columns that were fitted twice, that with the most changed codes first."""
        found = [
            fact
            for kind, fits in self._all
            for first, second in self._pairs(fits)
            for fact in _compared(kind, first, second)
        ]
        yield from sorted(found, key=lambda fact: -fact.moved)

    def _fitted(self, _result: Any, encoder: Any, data: Any = None, *_: Any, **options: Any) -> None:
        given = options.get("y", options.get("X", data))
        values = {name: one for name, one in _values(encoder, given) if len(one) <= MOST_VALUES}
        fits = self._of_encoder.get(encoder)
        if fits is None and len(self._all) < MOST_ENCODERS:
            fits = self._of_encoder[encoder] = []
            self._all.append((type(encoder).__name__, fits))
        if fits is not None and values:
            fits.append(_Fit(values, script_line(), self._begun()))

    def _fitted_and_used(self, result: Any, encoder: Any, *arguments: Any, **options: Any) -> None:
        self._fitted(result, encoder, *arguments, **options)
        self._used(result, encoder)

    def _used(self, _result: Any, encoder: Any, *_: Any, **__: Any) -> None:
        for fit in self._of_encoder.get(encoder, [])[-1:]:
            fit.used = True

    def _pairs(self, fits: list[_Fit]) -> Iterator[tuple[_Fit, _Fit]]:
        """Yield each two fits, but for those of folds, which have a training each, and of many groups."""
        used = [fit for fit in fits if fit.used]
        times = Counter(name for fit in used for name in fit.values)
        for first, second in combinations(used, 2):
            often = any(times[name] > MOST_FITS for name in first.values)
            if not often and not first.begun < second.begun < self._begun():
                yield first, second


def _values(encoder: Any, data: Any) -> Iterator[tuple[str, Array]]:
    if type(encoder).__name__ == "TextVectorization":
        words = encoder.get_vocabulary() if encoder.get_config()["output_mode"] == "int" else []
        yield encoder.name, np.asarray(words)
        return
    if type(encoder).__name__ == "LabelEncoder":
        name = getattr(data, "name", None)  # of a pandas Series
        if isinstance(name, str):
            yield name, np.asarray(encoder.classes_)
        return
    names = getattr(encoder, "feature_names_in_", ())  # of a data frame
    yield from zip(map(str, names), map(np.asarray, encoder.categories_), strict=False)


def _compared(kind: str, first: _Fit, second: _Fit) -> Iterator[RefittedEncoder]:
    for name in first.values.keys() & second.values.keys():
        one, other = first.values[name], second.values[name]
        shared, of_one, of_other = np.intersect1d(one, other, assume_unique=True, return_indices=True)
        moved = int((of_one != of_other).sum())
        if moved:
            values = len(one), len(other)
            yield RefittedEncoder(kind, name, values, len(shared), moved, first.where, second.where)


@dataclass
class _ScalerFit:
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
        self._latest: IdentityMap[Any, _ScalerFit] = IdentityMap()  # by scaler
        self._fits: list[_ScalerFit] = []

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
            self._fits.append(_ScalerFit(type(scaler).__name__, factor, offset, script_line()))
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

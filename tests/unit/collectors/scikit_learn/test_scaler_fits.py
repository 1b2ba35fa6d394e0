"""Scalers that are fitted again, as a script uses them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from diagnostics.collectors.preprocessing_fits import ScalerRecorder
from diagnostics.facts.data import row_numbers

ROWS = np.random.default_rng(0).normal(3, 2, size=(40, 3))
OTHERS = ROWS[:25] + 2


@pytest.fixture
def observed():
    recorder = ScalerRecorder(lambda work, *given, **options: work(*given, **options))
    stop = recorder.listen()
    yield recorder
    stop()


@pytest.mark.parametrize("kind", [StandardScaler, MinMaxScaler, RobustScaler, MaxAbsScaler])
def test_each_fit_has_its_rows_and_its_numbers(observed, kind):
    scaler = kind()
    made = [scaler.fit_transform(ROWS), scaler.fit_transform(OTHERS)]
    del scaler
    found = observed.facts().fits
    assert [fit.kind for fit in found] == [kind.__name__] * 2
    for fit, rows, raw in zip(found, made, (ROWS, OTHERS), strict=True):
        assert fit.numbers.tolist() == row_numbers(rows.astype(np.float32)).tolist()
        assert raw * fit.factor + fit.offset == pytest.approx(rows)
        assert fit.where.file.endswith("test_scaler_fits.py")


def test_scalers_without_a_mean_and_data_frames(observed):
    frame = pd.DataFrame(ROWS, columns=["a", "b", "c"])
    plain = StandardScaler(with_mean=False, with_std=False).set_output(transform="pandas").fit(frame)
    plain.transform(frame.iloc[:10])
    plain.transform(frame.iloc[10:])
    MinMaxScaler().fit_transform(OTHERS)
    first = observed.facts().fits[0]
    assert (first.factor.tolist(), first.offset.tolist(), len(first.numbers)) == ([1, 1, 1], [0, 0, 0], 40)


@pytest.mark.parametrize(
    "use",
    [
        lambda: StandardScaler().fit_transform(ROWS),
        lambda: (StandardScaler().fit_transform(ROWS), StandardScaler().fit(OTHERS)),
        lambda: [StandardScaler().fit_transform(rows[:, :1]) for rows in (ROWS, OTHERS)],
    ],
    ids=["one fit", "no rows of the second", "single columns"],
)
def test_yields_nothing_if_there_is_nothing_to_compare(observed, use):
    use()
    assert observed.facts() is None


def test_keeps_a_bounded_number_of_fits_and_rows(observed, monkeypatch):
    monkeypatch.setattr("diagnostics.collectors.preprocessing_fits.MAX_FITS", 3)
    monkeypatch.setattr("diagnostics.collectors.preprocessing_fits.MAX_ROWS", 30)
    for _ in range(5):
        StandardScaler().fit_transform(ROWS)
    assert [len(fit.numbers) for fit in observed.facts().fits] == [30] * 3

"""Rows of inputs held against their targets."""

import numpy as np
import pytest

from diagnostics.collectors.shared.target_rows import (
    are_standardised,
    blank_rows,
    copied_target,
    only_class,
    only_target,
    sentinel,
    steps_of,
)

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(200, 20))
CLASSES = np.eye(3)[RNG.integers(3, size=200)]


def with_column(column, values):
    rows = ROWS.copy()
    rows[:, column] = values
    return rows


class TestOnlyTarget:
    def test_is_the_value_of_all_rows(self):
        assert only_target(np.zeros((40, 1))) == 0
        assert only_target(np.ones((40, 1))) == 1
        assert only_target(np.full((40, 1), -2.5)) == -2.5

    def test_is_not_known_of_several(self):
        assert only_target(RNG.integers(2, size=(40, 1))) is None

    def test_the_only_class_of_several(self):
        classes = np.eye(4)
        assert only_class(classes[np.full(40, 2)]) == 2
        assert only_class(classes[RNG.integers(4, size=40)]) is None
        assert only_class(np.full((40, 4), 0.25)) is None
        assert only_class(np.ones((40, 1))) is None
        assert only_target(np.zeros((40, 2))) is None


class TestBlankRows:
    def test_are_counted_with_their_targets(self):
        rows = ROWS.copy()
        rows[::4] = 0
        found = blank_rows(rows, CLASSES)
        assert (found.rows, found.blank, found.value, found.elsewhere) == (200, 50, 0.0, 0.0)
        assert found.different_targets == 3

    def test_a_value_that_is_a_background_is_told(self):
        rows = np.where(RNG.random((200, 20)) < 0.5, 0, ROWS)
        rows[::4] = 0
        assert blank_rows(rows, CLASSES).elsewhere == pytest.approx(0.5, abs=0.05)

    def test_are_not_looked_for_in_narrow_rows(self):
        assert blank_rows(np.zeros((50, 4)), CLASSES[:50]) is None


class TestCopiedTarget:
    def test_is_found_among_the_inputs_of_a_regression(self):
        targets = RNG.normal(size=(200, 1))
        found = copied_target(with_column(19, targets[:, 0]), targets, "mean_squared_error")
        assert (found.column, found.columns, found.rows, found.equal) == (19, 20, 200, True)

    def test_is_not_a_value_that_is_near(self):
        targets = RNG.normal(size=(200, 1))
        near = targets[:, 0] + 1e-3 * RNG.normal(size=200)
        assert copied_target(with_column(19, near), targets, "mean_squared_error") is None

    def test_is_found_as_a_code_of_the_class(self):
        code = np.array([-1.2, 0.3, 2.0])[CLASSES.argmax(1)]
        found = copied_target(with_column(4, code), CLASSES, "cross_entropy")
        assert (found.column, found.values, found.equal) == (4, 3, False)

    def test_is_not_one_with_an_exception(self):
        code = np.array([-1.2, 0.3, 2.0])[CLASSES.argmax(1)]
        code[7] = 0.3 if code[7] != 0.3 else 2.0
        assert copied_target(with_column(4, code), CLASSES, "cross_entropy") is None

    def test_is_not_looked_for_in_rows_that_are_nothing_but_a_code(self):
        assert copied_target(CLASSES, CLASSES, "cross_entropy") is None

    def test_is_not_one_of_several(self):
        code = CLASSES.argmax(1)
        rows = with_column(4, code)
        rows[:, 5] = -code
        assert copied_target(rows, CLASSES, "cross_entropy") is None

    def test_is_found_at_any_step_of_windows_of_a_measured_series(self):
        series = np.cumsum(RNG.normal(size=221))
        windows = np.lib.stride_tricks.sliding_window_view(series, 20)
        for column in (0, 11):
            found = copied_target(windows, windows[:, [column]], "mean_squared_error", 1)
            assert (found.column, found.equal) == (column, True)

    def test_is_not_one_to_be_remembered(self):
        noise = np.lib.stride_tricks.sliding_window_view(RNG.normal(size=221), 20)
        paths = np.cumsum(ROWS, axis=1)  # each of its own
        for rows in (noise, paths):
            assert copied_target(rows, rows[:, [0]], "mean_squared_error", 1) is None


class TestRowsStandardised:
    @pytest.mark.parametrize("ddof", [0, 1])
    def test_each_by_itself(self, ddof):
        rows = ROWS * 3 + RNG.normal(size=(200, 1))
        assert are_standardised((rows - rows.mean(1, keepdims=True)) / rows.std(1, ddof=ddof, keepdims=True))

    def test_not_by_their_columns(self):
        assert not are_standardised((ROWS - ROWS.mean(0)) / ROWS.std(0))

    def test_not_of_a_long_signal(self):
        signal = RNG.normal(size=(200, 128))
        assert not are_standardised((signal - signal.mean(1, keepdims=True)) / signal.std(1, keepdims=True))


class TestSentinel:
    def test_is_far_from_all_others_also_once_scaled(self):
        column = np.where(np.arange(200) % 20 == 3, -9999, RNG.normal(size=200))
        found = sentinel(with_column(4, (column - column.mean()) / column.std()))
        assert (found.column, found.share, found.apart > 5000) == (4, pytest.approx(0.05), True)

    @pytest.mark.parametrize(
        "column",
        [
            RNG.integers(2, size=200) * 50.0,
            np.where(RNG.random(200) < 0.4, 0.0, RNG.gamma(5, 10, 200)),
            np.where(np.arange(200) == 3, 1e6, RNG.normal(size=200)),
        ],
        ids=["a flag", "many zeros", "a single outlier"],
    )
    def test_is_not_in_a_column_of_another_kind(self, column):
        assert sentinel(with_column(4, column)) is None


@pytest.mark.parametrize(("column", "is_found"), [(0, False), (20, False), (21, True), (23, True)])
def test_of_a_sequence_only_the_last_step_may_hold_its_target(column, is_found):
    sequences = np.random.default_rng(0).random((200, 8, 3))
    rows = sequences.reshape(200, -1)
    found = copied_target(rows, rows[:, column : column + 1], "mean_squared_error", steps_of((8, 3), 24))
    assert (found is not None) == is_found
    assert copied_target(rows, rows[:, column : column + 1], "mean_squared_error") is not None  # of a table


def test_numbers_of_the_last_step_are_counted_where_all_of_a_sequence_are_kept():
    assert [steps_of(shape, 24) for shape in ((8, 3), (800, 3), (24,), (3, 4, 2))] == [3, 0, None, None]

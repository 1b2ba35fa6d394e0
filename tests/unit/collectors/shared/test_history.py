import tracemalloc

import numpy as np
import pytest

from diagnostics.collectors.shared.history import History

FIELDS = [("steps", np.int64), ("losses", np.float64), ("norms", np.float32, (4,))]


def fed(rows, **sizes):
    history = History(FIELDS, **sizes)
    for step in range(rows):
        history.append((step, step / 2, np.full(4, step)))
    return history


class TestHistory:
    def test_keeps_everything_while_it_fits(self):
        kept = fed(20, recent=8, older=16).arrays()
        assert kept["steps"].tolist() == list(range(20))
        assert kept["losses"].tolist() == [step / 2 for step in range(20)]
        assert kept["norms"].shape == (20, 4)
        assert kept["norms"].dtype == np.float32

    def test_keeps_the_recent_past_in_full_and_thins_out_what_is_older(self):
        history = fed(100, recent=8, older=16)
        steps = history.arrays()["steps"].tolist()
        assert steps[-8:] == list(range(92, 100))
        assert history.stride == 8
        assert steps[:-8] == list(range(0, 92, 8))

    @pytest.mark.parametrize("rows", [1, 8, 9, 24, 25, 333, 1000, 4096])
    def test_what_is_old_is_spaced_evenly_from_the_first_step_on(self, rows):
        history = fed(rows, recent=8, older=16)
        steps = history.arrays()["steps"]
        older = steps[: max(0, len(steps) - 8)]
        assert older.tolist() == list(range(0, max(0, rows - 8), history.stride))
        assert steps[-1] == rows - 1
        assert len(steps) == len(history) <= 24

    def test_each_row_keeps_its_own_values(self):
        kept = fed(777, recent=8, older=16).arrays()
        assert (kept["losses"] == kept["steps"] / 2).all()
        assert (kept["norms"] == kept["steps"][:, None]).all()

    @pytest.mark.parametrize("at_once", [1, 5, 20])
    def test_rows_that_come_at_once_are_kept_as_one_by_one(self, at_once):
        history = History(FIELDS, recent=8, older=16)
        for first in range(0, 300, at_once):
            steps = np.arange(first, first + at_once)
            history.extend(at_once, steps=steps, losses=steps / 2, norms=steps[:, None])
        expected = fed(300, recent=8, older=16)
        assert (history.total, history.stride) == (300, expected.stride)
        for name, values in expected.arrays().items():
            assert np.array_equal(history.arrays()[name], values), name

    def test_an_odd_number_of_older_rows_works_too(self):
        history = fed(500, recent=3, older=5)
        steps = history.arrays()["steps"].tolist()
        assert steps[:-3] == list(range(0, 497, history.stride))

    def test_memory_is_constant_over_a_hundred_thousand_rows(self):
        row = (0, 0.5, np.ones(4, np.float32))
        history = fed(5000)
        held = history.nbytes
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(100_000):
            history.append(row)
        grown = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        assert history.nbytes == held
        assert grown < 10_000
        assert history.total == 105_000
        assert len(history) <= 2048

    def test_the_latest_row_can_be_completed(self):
        history = fed(30, recent=8, older=16)
        history.last()["losses"] = 7.5
        assert history.arrays()["losses"][-1] == 7.5

    def test_an_empty_one_has_no_latest_row(self):
        history = History(FIELDS)
        assert {name: len(values) for name, values in history.arrays().items()} == {
            "steps": 0, "losses": 0, "norms": 0
        }  # fmt: skip
        with pytest.raises(IndexError, match="the history has no rows yet"):
            history.last()

    def test_what_is_handed_out_is_a_copy(self):
        history = fed(3)
        history.arrays()["losses"][:] = 99
        assert history.arrays()["losses"].tolist() == [0, 0.5, 1]

"""How large the steps of a run are, and when that is not known."""

import numpy as np
import pytest

from diagnostics.rules.shared import update_size as step_sizes
from tests.courses import history


class TestUpdates:
    def test_their_size_is_the_median_over_layers_and_steps(self):
        run = history([1.0] * 60, update=np.array([1e-3, 3e-3, np.nan]))
        assert step_sizes.update_size(run) == pytest.approx(2e-3)
        assert step_sizes.update_size(run, since=10) == pytest.approx(3e-3)
        assert step_sizes.largest_update(run) == pytest.approx(3e-3)
        assert step_sizes.moved(run) == pytest.approx(0.12)

    def test_not_known_if_none_was_looked_at(self):
        run = history([1.0] * 60, update_ratios=None, sampled_steps=None)
        assert step_sizes.update_size(run) is None
        assert step_sizes.large_updates(run) is None
        assert not step_sizes.tiny_updates(run)

    def test_are_large_from_one_hundredth_on_or_where_the_first_were_a_tenth(self):
        assert step_sizes.large_updates(history([1.0] * 400, update=0.009)) is None
        assert step_sizes.large_updates(history([1.0] * 400, update=0.011)) == pytest.approx(0.011)
        blown_up = np.array([0.5, *[1e-3] * 19])
        assert step_sizes.large_updates(history([1.0] * 400, update=blown_up), since=100) == pytest.approx(0.5)

    def test_that_are_all_zero_are_not_tiny(self):
        # Another rule says that nothing changes, and why.
        assert not step_sizes.tiny_updates(history([1.0] * 60, update=0.0))

"""How large the steps of a run are, and when that is not known."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.training import UpdateHistory
from diagnostics.rules.shared import update_size
from tests.support.courses import history


class TestUpdates:
    def test_their_size_is_the_median_over_layers_and_steps(self):
        run = history([1.0] * 60, update=np.array([1e-3, 3e-3, np.nan]))
        assert update_size.update_size(run.updates) == pytest.approx(2e-3)
        assert update_size.update_size(run.updates, since=10) == pytest.approx(3e-3)
        assert update_size.largest_update(run.updates) == pytest.approx(3e-3)
        assert update_size.moved(run.steps, run.updates) == pytest.approx(0.12)

    def test_not_known_if_none_was_looked_at(self):
        for updates in (None, history([1.0] * 60, update=np.nan).updates):
            assert update_size.update_size(updates) is None
            assert update_size.large_updates(updates) is None
        assert not update_size.tiny_updates(updates)
        with pytest.raises(NotApplicable, match="needs steps with the weights compared before and after"):
            update_size.check_measured(updates)

    def test_are_large_from_one_hundredth_on_or_where_the_first_were_a_tenth(self):
        assert update_size.large_updates(history([1.0] * 400, update=0.009).updates) is None
        assert update_size.large_updates(history([1.0] * 400, update=0.011).updates) == pytest.approx(0.011)
        blown_up = np.array([0.5, *[1e-3] * 19])
        assert update_size.large_updates(
            history([1.0] * 400, update=blown_up).updates, since=100
        ) == pytest.approx(0.5)

    @pytest.mark.parametrize(
        ("last", "size"), [(0.01, None), (1.0, 0.1), (20.0, 0.1)], ids=["shrunk", "same", "grown"]
    )
    def test_of_weights_that_have_shrunk_are_compared_with_their_first_norm(self, last, size):
        norms = np.array([[1.0], *[[last]] * 29])
        updates = UpdateHistory(("fc",), np.arange(30) * 10, np.array([[0.005], *[[0.1]] * 29]), norms)
        found = update_size.large_updates(updates, since=100)
        assert found == (None if size is None else pytest.approx(size))

    def test_of_the_first_steps_do_not_count_if_the_weights_shrank(self):
        ratios = np.array([[0.2], *[[0.001]] * 29])
        shrank, grew = (np.array([[1.0], *[[last]] * 29]) for last in (0.01, 5.0))
        steps = np.arange(30) * 10
        assert update_size.large_updates(UpdateHistory(("fc",), steps, ratios, shrank)) is None
        assert update_size.large_updates(UpdateHistory(("fc",), steps, ratios, grew)) is not None

    def test_that_are_all_zero_are_not_tiny(self):
        # Another rule says that nothing changes, and why.
        assert not update_size.tiny_updates(history([1.0] * 60, update=0.0).updates)

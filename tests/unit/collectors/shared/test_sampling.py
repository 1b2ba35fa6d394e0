"""Which steps are looked at."""

import itertools

from diagnostics.collectors.shared.history import OFTEN, SELDOM, is_sampled_step


def looks(every, until):
    return [step for step in range(until) if is_sampled_step(step, every)]


class TestLooksCloser:
    def test_at_the_beginning_ever_less_often_and_then_evenly(self):
        assert looks(20, 61) == [0, 1, 2, 4, 8, 16, 20, 40, 60]

    def test_in_a_long_run_more_seldom(self):
        late = [step for step in looks(20, 3000) if step >= 20 * OFTEN]
        assert {after - before for before, after in itertools.pairwise(late)} == {20 * SELDOM}
        assert late[0] == 20 * OFTEN

    def test_at_all_steps_of_whoever_asks_for_all(self):
        assert looks(1, 200) == list(range(200))

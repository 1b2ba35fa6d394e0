"""Lines over the steps, as they are drawn."""

import re

import numpy as np
import pytest

from diagnostics.report.html.charts import Axis, line, number


class TestLine:
    def test_marks_the_steps_that_are_not_finite(self):
        steps = np.arange(4)
        drawn = line("Loss", Axis(0, 3), steps, np.array([1.0, 2.0, np.nan, np.inf]))
        assert drawn.count('<i class="cross"') == 2
        assert 'style="left:62.5%"' in drawn  # the middle of the third of four
        assert "2 of 4, the first at step 2" in drawn

    def test_does_not_draw_through_a_gap(self):
        drawn = line("Loss", Axis(0, 4), np.arange(5), np.array([1.0, 2.0, np.nan, 2.0, 1.0]))
        assert drawn.count("<polyline") == 2

    def test_puts_the_largest_value_above_the_smallest(self):
        drawn = line("Loss", Axis(0, 1), np.arange(2), np.array([1.0, 2.0]))
        (_, low), (_, high) = (
            map(float, p.split(",")) for p in re.search(r'points="([^"]*)"', drawn)[1].split(" ")
        )
        assert low == pytest.approx(95.45, abs=0.1)  # 5% of room at either end
        assert high == pytest.approx(4.55, abs=0.1)

    def test_is_logarithmic_where_a_straight_scale_would_hide_most(self):
        values = np.array([1000.0, 1.0])
        assert "Loss, logarithmic" in line("Loss", Axis(0, 1), np.arange(2), values)
        assert "logarithmic" not in line("Loss", Axis(0, 1), np.arange(2), values, log=False)
        assert "logarithmic" not in line("Loss", Axis(0, 1), np.arange(2), np.array([1000.0, -1.0]))

    def test_of_many_steps_shows_median_and_spread(self):
        values = np.tile([1.0, 2.0, 3.0], 400)
        drawn = line("Loss", Axis(0, 1199), np.arange(1200), values)
        assert "each point is the median of up to 4 steps; the band, the smallest to the largest" in drawn
        assert drawn.count('class="band"') == 1

    def test_of_nothing_finite_is_still_a_figure(self):
        assert "never finite" in line("Loss", Axis(0, 1), np.arange(2), np.full(2, np.nan))


class TestAxis:
    def test_leaves_no_column_empty(self):
        steps = np.array([0, 1, 2, 4, 8, 16, 20, 40])
        place, count = Axis(0, 44).columns(steps, 120)
        assert count == 2
        assert sorted(set(place.tolist())) == [0, 1]

    def test_numbers_the_first_and_the_last_step(self):
        assert re.findall(r">([\d,]+)<", Axis(0, 4999).labels()) == ["0", "2,000", "4,000", "4,999"]
        assert re.findall(r">([\d,]+)<", Axis(7, 7).labels()) == ["7"]

    def test_writes_small_and_large_numbers_as_powers(self):
        assert [number(v) for v in (0.0, 0.02, 1500.0, 1e-7, 2e6)] == [
            "0",
            "0.02",
            "1,500",
            "10\N{SUPERSCRIPT MINUS}\N{SUPERSCRIPT SEVEN}",
            "2\N{MIDDLE DOT}10\N{SUPERSCRIPT SIX}",
        ]

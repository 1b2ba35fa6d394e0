"""Windows of one series on both sides of a split."""

import numpy as np
import pytest

from diagnostics.collectors.shared.split_overlap import compared_rows

SERIES = np.cumsum(np.random.default_rng(0).normal(size=400)).astype(np.float32)


def windows(starts, channels=0, length=24):
    rows = [SERIES[start : start + length] for start in starts]
    return [(row if not channels else np.stack([row, row**2][:channels], axis=1), 0) for row in rows]


def overlapping(training, evaluation, **options):
    (facts,) = compared_rows(windows(training, **options), windows(evaluation, **options))
    return facts.overlapping


@pytest.mark.parametrize("channels", [0, 1, 2])
def test_a_split_at_random_is_told(channels):
    order = np.random.default_rng(1).permutation(370)
    assert overlapping(order[:300], order[300:], channels=channels) > 60


def test_a_split_in_time_overlaps_nowhere_at_its_end():
    assert overlapping(range(280), range(280, 370)) == 0
    assert overlapping(range(256), range(280, 370)) == 0


def test_rows_that_share_a_part_at_the_same_place_do_not_count():
    rows = np.random.default_rng(0).normal(size=(60, 24)).astype(np.float32)
    rows[:, 4:20] = rows[0, 4:20]
    (facts,) = compared_rows([(row, 0) for row in rows[:40]], [(row, 0) for row in rows[40:]])
    assert facts.overlapping == 0

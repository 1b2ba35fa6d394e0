"""Which examples come first, and how they are compared."""

import numpy as np

from diagnostics.collectors.subset_trials.choice import Rows, digests, ordered


def rows(inputs, targets, size=None):
    found = digests([np.array(inputs)], len(inputs)), digests([np.array(targets)], len(targets))
    return Rows(*found, np.array(targets, float), frozenset(targets), len(inputs) if size is None else size)


class TestOrdered:
    def test_the_first_two_differ_in_their_label(self):
        assert ordered(rows([1, 2, 3, 4], [0, 0, 0, 1]))[:2] == [0, 3]

    def test_the_first_have_every_label(self):
        labels = [0, 0, 1, 0, 2, 3, 1, 4]
        assert {labels[row] for row in ordered(rows(range(8), labels))[:5]} == {0, 1, 2, 3, 4}

    def test_equal_inputs_come_last_and_equal_examples_once(self):
        assert ordered(rows([7, 7, 8, 7, 9], [0, 1, 0, 1, 0])) == [0, 2, 4, 1]

    def test_no_more_rows_than_the_batch_holds(self):
        assert len(ordered(rows(range(20), [0, 1] * 10, size=6))) == 6


class TestDigests:
    def test_equal_rows_of_all_arrays_have_equal_digests(self):
        one, two, three = digests([np.array([1, 1, 1]), np.array([[2, 3], [2, 3], [2, 4]])], 3)
        assert one == two != three

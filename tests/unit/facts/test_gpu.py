"""Sizes and holders, as a person reads them."""

import pytest

from diagnostics.facts.gpu import Holder, in_bytes, listed


class TestInBytes:
    @pytest.mark.parametrize(
        ("size", "text"),
        [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1.5 * 2**20, "1.5 MiB"),
            (24 * 2**30, "24.0 GiB"),
            (5000 * 2**40, "5000.0 TiB"),
        ],
    )
    def test_takes_the_largest_unit_that_leaves_a_number_above_one(self, size, text):
        assert in_bytes(size) == text


class TestHolder:
    @pytest.mark.parametrize(
        ("holder", "text"),
        [
            (
                Holder(4711, 2**30, "ada", ("PyTorch", "TensorFlow")),
                "1.0 GiB in process 4711 (ada, PyTorch, TensorFlow)",
            ),
            (Holder(4711, 2**30, "ada", None), "1.0 GiB in process 4711 (ada)"),
            (Holder(4711), "process 4711"),
        ],
    )
    def test_is_named_with_as_much_as_is_known(self, holder, text):
        assert str(holder) == text


class TestListed:
    def test_names_those_that_hold_most_and_counts_the_rest(self):
        holders = [Holder(number, number * 2**20 or None) for number in range(6)]
        assert listed(holders, most=2) == "5.0 MiB in process 5, 4.0 MiB in process 4, and 4 more"
        assert listed(holders[:2]) == "1.0 MiB in process 1, process 0"

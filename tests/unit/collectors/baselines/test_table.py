"""Which columns of a batch a linear model gets."""

import time

import numpy as np
import pytest

from diagnostics.collectors.baselines.table import Features, Table, collected, split_pair
from diagnostics.errors import InvalidInput


def table(inputs, target):
    made = Table()
    made.add(inputs, target)
    return made


def batches(count):
    return (({"0": np.zeros((4, 1))}, np.zeros(4)) for _ in range(count))


def matrix(inputs, target=(0, 1, 0)):
    made = table(inputs, np.array(target))
    features = Features.learned(made, np.arange(made.rows))
    return features, features.matrix(made)


class TestFeatures:
    def test_numbers_are_flattened_and_standardised(self):
        features, values = matrix({"0": np.arange(12, dtype=np.uint8).reshape(3, 2, 2)})
        assert values.shape == (3, 4)
        assert values.mean(0) == pytest.approx(0, abs=1e-6)
        assert values.std(0) == pytest.approx(1)
        assert features.described == "4 numbers"

    def test_a_constant_number_is_zero_and_no_division_by_zero(self):
        assert matrix({"0": np.ones((3, 1))})[1].tolist() == [[0], [0], [0]]

    def test_missing_numbers_do_not_spread(self):
        assert np.isfinite(matrix({"0": np.array([[1.0], [np.nan], [np.inf]])})[1]).all()

    @pytest.mark.parametrize("texts", [["a bad film", "Good film", "bad"], [b"a bad film", b"Good film", b"bad"]])
    def test_texts_are_bags_of_words(self, texts):
        features, values = matrix({"text": texts})
        assert set(features.vocabularies["text"]) == {"a", "bad", "film", "good"}
        assert features.described == "4 words or tokens"
        assert values.shape == (3, 4)

    @pytest.mark.parametrize("ids", [[[5, 6], [5], [7, 7, 7]], np.array([[5, 6], [5, 0], [7, 7]])])
    def test_token_ids_are_counted_padded_or_not(self, ids):
        features, _ = matrix({"input_ids": ids, "attention_mask": np.ones((3, 2))})
        assert {5, 6, 7} <= set(features.vocabularies["input_ids"])
        assert features.names == ()

    def test_nested_inputs_are_found(self):
        features, _ = matrix({"image": {"left": np.eye(3), "right": np.eye(3)}})
        assert features.names == ("image.left", "image.right")

    def test_of_long_inputs_every_kth_number_is_used(self):
        made = table({"0": np.zeros((2, 5000))}, np.zeros(2))
        assert made.numbers["0"][0].shape == (2, 1667)
        assert made.strided == {"0": 5000}

    def test_inputs_of_several_shapes_are_refused_in_words(self):
        made = table({"0": np.zeros((2, 3))}, np.zeros(2))
        made.add({"0": np.zeros((2, 4))}, np.zeros(2))
        with pytest.raises(InvalidInput, match="needs inputs of one shape, and those named '0' differ"):
            Features.learned(made, np.arange(4))

    def test_neither_numbers_nor_text_is_refused_in_words(self):
        made = table({"image": [object(), object()]}, np.zeros(2))
        with pytest.raises(InvalidInput, match=r"finds neither numbers nor text in the inputs \(image\)"):
            Features.learned(made, np.arange(2))


class TestCollected:
    def test_reads_no_more_rows_than_asked_for(self):
        read = collected(
            ((({"0": np.zeros((4, 1))}), np.zeros(4)) for _ in range(99)), time.monotonic() + 60, most=10
        )
        assert read.rows == 12

    def test_ends_when_the_time_is_over(self):
        read = collected(batches(99), time.monotonic() - 1)
        assert read.rows == 4

    def test_no_row_is_refused_in_words(self):
        with pytest.raises(InvalidInput, match="data without any row"):
            collected((), time.monotonic() + 1)

    def test_lengths_that_differ_are_refused_in_words(self):
        with pytest.raises(InvalidInput, match="4 rows of inputs '0' and 3 targets"):
            table({"0": np.zeros((4, 1))}, np.zeros(3))


class TestSplitPair:
    def test_the_last_of_a_tuple_is_the_target(self):
        inputs, target = split_pair((1, 2, 3))
        assert (inputs, target) == ({"0": 1, "1": 2}, 3)

    def test_a_dict_names_it(self):
        assert split_pair({"x": 1, "labels": 2}) == ({"x": 1}, 2)

    @pytest.mark.parametrize("batch", [np.zeros(3), {"x": 1}, (1,)])
    def test_a_batch_without_one_is_refused_in_words(self, batch):
        with pytest.raises(InvalidInput, match="finds no target in a batch"):
            split_pair(batch)

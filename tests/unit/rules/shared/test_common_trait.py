import numpy as np
import pytest

from diagnostics.facts.pipeline import BatchFacts
from diagnostics.rules.shared.common_trait import shared_trait

RANDOM = np.random.default_rng(0)
FEATURES = RANDOM.normal(size=(8, 4)).astype(np.float32)
TWO_LABELS = np.arange(8) % 2


def features(rows, column, value):
    changed = FEATURES.copy()
    changed[list(rows), column] = value
    return changed


class TestValuesThatBreakArithmetic:
    def test_nan_is_named_with_its_column_even_for_one_example(self):
        batch = BatchFacts(8, {"x": features([5], 1, np.inf)}, TWO_LABELS)
        assert shared_trait((5,), batch) == (
            "Example 5 has NaN or infinite values in x (column 1), and no other example does."
        )

    def test_a_regression_target_is_looked_at_too(self):
        target = FEATURES[:, 0].copy()
        target[[2, 3]] = -np.inf
        assert shared_trait((2, 3), BatchFacts(8, {"x": FEATURES}, target, "price")) == (
            "Both have NaN or infinite values in price, and no other example does."
        )

    def test_a_whole_batch_of_nan_has_no_others_to_compare_with(self):
        batch = BatchFacts(2, {"x": np.full((2, 2, 2), np.nan)})
        assert shared_trait((0, 1), batch) == "Both have NaN or infinite values in x."

    def test_a_mask_that_hides_everything(self):
        mask = np.ones((8, 5), dtype=np.int64)
        mask[[1, 2, 7]] = 0
        ids = RANDOM.integers(5, 900, size=(8, 5))
        assert shared_trait((1, 2, 7), BatchFacts(8, {"input_ids": ids, "attention_mask": mask}, TWO_LABELS)) == (
            "All of them have only zeros in the attention mask, and no other example does."
        )

    def test_an_input_without_variation(self):
        assert shared_trait((4,), BatchFacts(8, {"x": features([4], slice(None), 0.5)})) == (
            "Example 4 has the same value everywhere in x (standard deviation 0), and no other example does."
        )


class TestLabels:
    def test_one_label(self):
        labels = np.array([0, 2, 1, 0, 2, 1, 2, 0])
        assert shared_trait((1, 4, 6), BatchFacts(8, {"x": FEATURES}, labels)) == (
            "All of them have label 2, and no other example does."
        )

    def test_two_labels(self):
        labels = np.array([0, 2, 3, 0, 2, 3, 1, 0])
        assert shared_trait((1, 2, 4, 5), BatchFacts(8, {}, labels)) == (
            "All of them have label 2 or 3, and no other example does."
        )

    def test_a_label_that_others_carry_too_is_none(self):
        labels = np.array([0, 2, 1, 0, 2, 1, 2, 2])
        assert shared_trait((1, 4, 6), BatchFacts(8, {}, labels)) is None

    def test_labels_that_occur_once_are_none(self):
        assert shared_trait((1, 4, 6), BatchFacts(8, {}, np.arange(8))) is None


class TestColumns:
    def test_one_value_where_all_others_differ(self):
        assert shared_trait((0, 5, 6), BatchFacts(8, {"x": features([0, 5, 6], 1, 0)}, TWO_LABELS)) == (
            "In all of them, column 1 of x is 0; it differs in all other examples."
        )

    def test_a_flag_among_many_that_may_be_chance_is_none(self):
        flags = RANDOM.integers(0, 2, size=(8, 6))
        flags[:, 3] = [1, 0, 1, 0, 0, 0, 1, 0]
        flags[:, :2] = [0, 1]  # the extremes of a row tell nothing
        assert shared_trait((0, 2, 6), BatchFacts(8, {"x": flags}, TWO_LABELS)) is None

    def test_the_same_flag_alone_is_named(self):
        flag = np.array([1, 0, 1, 0, 0, 0, 1, 0])
        assert shared_trait((0, 2, 6), BatchFacts(8, {"x": flag}, TWO_LABELS)) == (
            "In all of them, x is 1 or more; in the others it is 0 or less."
        )


class TestRanges:
    def test_inputs_above_all_others(self):
        batch = BatchFacts(8, {"x": np.array([900.0, 1, 2, 3, 4, 800, 1000, 5])}, TWO_LABELS)
        assert shared_trait((0, 5, 6), batch) == (
            "In all of them, x is 800 or more; in the others it is 5 or less."
        )

    def test_the_largest_of_many_values(self):
        large = FEATURES.copy()
        large[[0, 5, 6], [0, 1, 2]] = [900, 800, 1000]
        assert shared_trait((0, 5, 6), BatchFacts(8, {"x": large}, TWO_LABELS)) == (
            "In all of them, the largest value of x is 800 or more; in the others it is "
            f"{np.delete(large, [0, 5, 6], axis=0).max():.4g} or less."
        )

    def test_a_regression_target_below_all_others(self):
        target = np.array([1.0, -2, 2, 3, -0.5, 4, -1, 5])
        assert shared_trait((1, 4, 6), BatchFacts(8, {"x": FEATURES}, target, "price")) == (
            "In all of them, price is -0.5 or less; in the others it is 1 or more."
        )

    def test_one_target_in_a_tuple_that_has_no_name(self):
        target = np.linspace(0, 1, 32)
        target[3] = -2
        batch = BatchFacts(32, {"0": np.ones((32, 4), dtype=int)}, target, "1")
        assert shared_trait((3,), batch) == (
            "In this example, target is -2 or less; in the others it is 0 or more."
        )

    def test_one_column_of_a_large_batch(self):
        rows = (3, 8, 12, 40)
        table = RANDOM.uniform(1, 2, size=(64, 6))
        table[:, 0] = RANDOM.uniform(0, 9, size=64)  # the extremes of a row tell nothing
        table[list(rows), 4] = [0.1, 0.2, 0.3, 0.4]
        table[:, 5] = 0
        assert shared_trait(rows, BatchFacts(64, {"x": table})) == (
            "In all of them, column 4 of x is 0.4 or less; in the others it is "
            f"{np.delete(table, rows, axis=0)[:, 4].min():.4g} or more."
        )


class TestChance:
    def test_one_example_is_always_the_largest_of_something(self):
        assert shared_trait((2,), BatchFacts(8, {"x": FEATURES}, np.arange(8))) is None

    @pytest.mark.parametrize("seed", range(20))
    def test_examples_picked_at_random_rarely_share_anything(self, seed):
        random = np.random.default_rng(seed)
        found = 0
        for _ in range(50):
            batch = BatchFacts(16, {"x": random.normal(size=(16, 10))}, random.integers(0, 3, 16))
            rows = tuple(sorted(random.choice(16, size=3, replace=False).tolist()))
            found += shared_trait(rows, batch) is not None
        assert found <= 10  # of 50; CHANCE allows 10 % for each kind of trait

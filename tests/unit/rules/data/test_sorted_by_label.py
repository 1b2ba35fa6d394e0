import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.data import DatasetFacts, RowOrder
from diagnostics.facts.pipeline import ModelFacts, OutputFacts
from diagnostics.rules.data.sorted_by_label import SortedByLabel
from tests.support.courses import answers, history, judge

RULE = SortedByLabel()
TORCH = ModelFacts("Sequential", "torch", 1000, 1000)
KERAS = ModelFacts("Sequential", "keras", 1000, 1000)
SPREAD = np.repeat([0, 1, 2], 100)


def batches(*labels: int, size: int = 32) -> tuple[np.ndarray, ...]:
    return tuple(np.full(size, label) for label in labels)


def rows(first: tuple[np.ndarray, ...], labels=SPREAD, shuffled=False, spread_out=True) -> DatasetFacts:
    return DatasetFacts(3000, 300, spread_out=spread_out, labels=labels, shuffled=shuffled, first_batches=first)


class TestFires:
    def test_on_batches_of_one_class_each(self):
        finding = RULE.from_dataset(rows(batches(0, 0, 0, 1, 1)), TORCH)
        assert (finding.rule, finding.severity, finding.stage) == ("sorted-by-label", "warning", "data")
        assert finding.evidence == {
            "batches_of_one_class": 5,
            "batches_looked_at": 5,
            "batch_size": 32,
            "labels_of_these": [0, 0, 0, 1, 1],
            "num_classes": 3,
        }

    def test_although_a_border_falls_into_one_of_them(self):
        mixed = np.repeat([0, 1], 16)
        first = (*batches(0, 0), mixed, *batches(1, 1))
        assert RULE.from_dataset(rows(first, shuffled=None), KERAS).severity == "warning"

    def test_in_keras_it_says_to_shuffle_before_batching(self):
        assert RULE.from_dataset(rows(batches(0, 0, 0)), KERAS).severity == "warning"

    def test_on_first_rows_of_one_class_for_a_model_of_three(self):
        stream = rows(batches(0, 0, 0), labels=np.zeros(512, int), spread_out=False)
        assert RULE.from_outputs(stream, OutputFacts((32, 3), 3), KERAS).severity == "warning"


class TestStaysSilent:
    def test_on_shuffled_rows(self):
        assert RULE.from_dataset(rows((), shuffled=True), TORCH) is None

    def test_on_mixed_batches(self):
        mixed = tuple(np.arange(32) % 3 for _ in range(5))
        assert RULE.from_dataset(rows(mixed), TORCH) is None

    def test_where_only_two_batches_are_pure(self):
        mixed = tuple(np.arange(32) % 3 for _ in range(3))
        assert RULE.from_dataset(rows((*batches(0, 0), *mixed)), TORCH) is None

    def test_on_rare_classes_in_random_order(self):
        labels = np.array([0] * 290 + [1] * 10)  # 8 labels: one class in three batches out of four
        assert RULE.from_dataset(rows(batches(0, 0, 0, 0, size=8), labels=labels), TORCH) is None
        assert RULE.from_dataset(rows(batches(0, 0, 0, 0, size=8), labels=SPREAD), TORCH) is not None

    def test_on_data_of_one_class(self):
        assert RULE.from_dataset(rows(batches(0, 0, 0), labels=np.zeros(300, int)), TORCH) is None

    def test_on_a_stream_of_a_rare_positive(self):
        stream = rows(batches(0, 0, 0), labels=np.zeros(512, int), spread_out=False)
        assert RULE.from_outputs(stream, OutputFacts((32, 2), 2), KERAS) is None

    def test_on_outputs_where_labels_from_all_over_have_been_judged(self):
        labels = np.array([0] * 290 + [1] * 10)
        rare = rows(batches(0, 0, 0, 0, size=8), labels=labels)
        assert RULE.from_outputs(rare, OutputFacts((8, 3), 3), TORCH) is None


class TestNotApplicable:
    @pytest.mark.parametrize("first", [(), batches(0, 0), batches(0, 0, 0, size=7)])
    def test_without_three_batches_of_eight(self, first):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(rows(first), TORCH)

    def test_where_the_classes_are_not_known(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(rows(batches(0, 0, 0), labels=None), TORCH)
        with pytest.raises(NotApplicable):
            RULE.from_outputs(rows(batches(0, 0, 0), labels=None), OutputFacts((32, 1), None), TORCH)

    def test_where_only_the_first_rows_were_read_and_are_all_alike(self):
        stream = rows(batches(0, 0, 0), labels=np.zeros(512, int), spread_out=False)
        with pytest.raises(NotApplicable):
            RULE.from_dataset(stream, KERAS)


class TestWhileTraining:
    def found(self, seen, model=TORCH, **known):
        return judge(RULE.from_answers, seen, history(steps=800, **known), model)

    def test_fires_where_most_batches_hold_one_class(self):
        counts = 32 * np.eye(3, dtype=int)[[0, 0, 1, 1, 1, 2, 2, 0]]
        finding = self.found(answers([0.5] * 8, counts))
        assert finding.severity == "warning"

    def test_names_no_more_labels_than_one_reads(self):
        assert self.found(answers([0.5] * 40, 32 * np.eye(40, dtype=int)), KERAS).severity == "warning"

    def test_is_silent_on_mixed_batches(self):
        assert self.found(answers([0.5] * 8, (20, 12))) is None

    def test_is_silent_on_a_rare_class(self):
        counts = np.array([[32, 0]] * 15 + [[31, 1]] * 5)
        assert self.found(answers([0.5] * 20, counts)) is None

    def test_is_silent_where_all_labels_are_of_one_class(self):
        assert self.found(answers([0.5] * 8, (32, 0))) is None

    def test_is_not_applicable_to_small_batches(self):
        with pytest.raises(NotApplicable):
            self.found(answers([0.5] * 20, (4, 0)))

    def test_is_silent_where_all_that_are_pure_are_of_one_class(self):
        assert self.found(answers([0.5] * 8, [[16, 16]] + [[0, 32]] * 7)) is None

    def test_is_not_applicable_to_steps_of_several_batches(self):
        # As those of a judge, who sees real examples and made ones.
        counts = 32 * np.eye(2, dtype=int)[[0, 1] * 4]
        with pytest.raises(NotApplicable):
            self.found(answers([0.5] * 8, counts), passes=np.full(800, 2))


class TestRowsGivenAsArrays:
    KERAS = ModelFacts("Sequential", "keras", 10, 10)
    SORTED = np.repeat(np.arange(5), 160)

    def judge(self, labels, held_out=0, shuffled=True, batch_size=32):
        return SortedByLabel().from_order(RowOrder(labels, held_out, shuffled, batch_size), self.KERAS)

    def test_fires_on_a_class_that_is_held_out(self):
        finding = self.judge(self.SORTED, 160)
        assert (finding.rule, finding.severity) == ("sorted-by-label", "warning")
        assert finding.evidence["never_trained"] == [4]

    def test_fires_on_a_part_of_a_class_that_is_held_out(self):
        assert self.judge(self.SORTED, 80).severity == "warning"

    def test_fires_on_a_class_held_out_among_others(self):
        mixed = np.random.default_rng(0).integers(0, 3, 800)
        mixed[720::2] = 3
        finding = self.judge(mixed, 160)
        assert (finding.severity, finding.evidence["never_trained"]) == ("warning", [3])
        mixed[0] = 3
        assert self.judge(mixed, 160) is None

    def test_fires_on_batches_of_one_class(self):
        assert self.judge(np.repeat([1, 0], 400), shuffled=False, batch_size=20).severity == "warning"

    @pytest.mark.parametrize(
        ("labels", "options"),
        [
            (SORTED, {}),
            (np.random.default_rng(0).integers(0, 5, 800), {"held_out": 160, "shuffled": False}),
            (np.arange(800) // 5, {"held_out": 160}),
            (np.zeros(800, int), {"held_out": 160, "shuffled": False}),
            (SORTED, {"shuffled": False, "batch_size": 4}),
        ],
        ids=["shuffled", "in random order", "few rows each", "one class", "small batches"],
    )
    def test_silent(self, labels, options):
        assert self.judge(labels, **options) is None

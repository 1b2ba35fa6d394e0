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
        assert finding.message == (
            "All 5 batches read hold one class each (label 0, then 1), while the rows read carry 3 classes. The "
            "rows are sorted by label and not shuffled, so each step biases the model towards one class, and "
            "the next class reverses it."
        )
        assert finding.fix == "DataLoader(dataset, batch_size=..., shuffle=True)"
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
        assert RULE.from_dataset(rows(first, shuffled=None), KERAS).message.startswith(
            "4 of the first 5 batches hold one class each (label 0, then 1), while the rows read carry 3 classes."
        )

    def test_in_keras_it_says_to_shuffle_before_batching(self):
        assert RULE.from_dataset(rows(batches(0, 0, 0)), KERAS).fix == (
            "dataset.shuffle(number_of_rows) before .batch(...), so that rows are shuffled and not batches; "
            "or hand arrays to model.fit, which shuffles them itself"
        )

    def test_on_first_rows_of_one_class_for_a_model_of_three(self):
        stream = rows(batches(0, 0, 0), labels=np.zeros(512, int), spread_out=False)
        finding = RULE.from_outputs(stream, OutputFacts((32, 3), 3), KERAS)
        assert "(label 0), while the model has 3 classes." in finding.message


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
        with pytest.raises(NotApplicable, match="needs the class labels of the first 3 batches, of at least 8"):
            RULE.from_dataset(rows(first), TORCH)

    def test_where_the_classes_are_not_known(self):
        with pytest.raises(NotApplicable, match="needs to know which classes there are"):
            RULE.from_dataset(rows(batches(0, 0, 0), labels=None), TORCH)
        with pytest.raises(NotApplicable, match="needs to know which classes there are"):
            RULE.from_outputs(rows(batches(0, 0, 0), labels=None), OutputFacts((32, 1), None), TORCH)

    def test_where_only_the_first_rows_were_read_and_are_all_alike(self):
        stream = rows(batches(0, 0, 0), labels=np.zeros(512, int), spread_out=False)
        with pytest.raises(NotApplicable, match="needs labels from all over the dataset, or the model's outputs"):
            RULE.from_dataset(stream, KERAS)


class TestWhileTraining:
    def found(self, seen, model=TORCH, **known):
        return judge(RULE.from_answers, seen, history(steps=800, **known), model)

    def test_fires_where_most_batches_hold_one_class(self):
        counts = 32 * np.eye(3, dtype=int)[[0, 0, 1, 1, 1, 2, 2, 0]]
        finding = self.found(answers([0.5] * 8, counts))
        assert finding.severity == "warning"
        assert finding.message == (
            "Of the 8 training batches sampled, all hold one class only (label 0, then 1, then 2, then 0), "
            "while there are 3 classes in all. The rows are sorted by label and not shuffled, so each step "
            "biases the model towards one class, and the next class reverses it."
        )
        assert finding.fix == "DataLoader(dataset, batch_size=..., shuffle=True)"

    def test_names_no_more_labels_than_one_reads(self):
        finding = self.found(answers([0.5] * 40, 32 * np.eye(40, dtype=int)), KERAS)
        assert "(label 0, then 1, then 2, then 3, then 4, then 5, then 6, then 7, …)" in finding.message
        assert finding.fix.startswith("dataset.shuffle(number_of_rows)")

    def test_is_silent_on_mixed_batches(self):
        assert self.found(answers([0.5] * 8, (20, 12))) is None

    def test_is_silent_on_a_rare_class(self):
        counts = np.array([[32, 0]] * 15 + [[31, 1]] * 5)
        assert self.found(answers([0.5] * 20, counts)) is None

    def test_is_silent_where_all_labels_are_of_one_class(self):
        assert self.found(answers([0.5] * 8, (32, 0))) is None

    def test_is_not_applicable_to_small_batches(self):
        with pytest.raises(NotApplicable, match="needs the class labels of 6 batches, of at least 8 labels each"):
            self.found(answers([0.5] * 20, (4, 0)))

    def test_is_silent_where_all_that_are_pure_are_of_one_class(self):
        assert self.found(answers([0.5] * 8, [[16, 16]] + [[0, 32]] * 7)) is None

    def test_is_not_applicable_to_steps_of_several_batches(self):
        # As those of a judge, who sees real examples and made ones.
        counts = 32 * np.eye(2, dtype=int)[[0, 1] * 4]
        with pytest.raises(NotApplicable, match="needs steps of one pass each"):
            self.found(answers([0.5] * 8, counts), passes=np.full(800, 2))


class TestRowsGivenAsArrays:
    KERAS = ModelFacts("Sequential", "keras", 10, 10)
    SORTED = np.repeat(np.arange(5), 160)

    def judge(self, labels, held_out=0, shuffled=True, batch_size=32):
        return SortedByLabel().from_order(RowOrder(labels, held_out, shuffled, batch_size), self.KERAS)

    def test_fires_on_a_class_that_is_held_out(self):
        finding = self.judge(self.SORTED, 160)
        assert (finding.rule, finding.severity) == ("sorted-by-label", "warning")
        assert finding.message == (
            "The rows are sorted by label, and validation_split holds out the last 160 of them before anything is "
            "shuffled: these have label 4 only. No row with label 4 is left to train on."
        )
        assert finding.evidence["never_trained"] == [4]

    def test_fires_on_a_part_of_a_class_that_is_held_out(self):
        finding = self.judge(self.SORTED, 80)
        assert finding.message.endswith("these have label 4 only. The 720 rows left to train on have 5 labels.")

    def test_fires_on_batches_of_one_class(self):
        finding = self.judge(np.repeat([1, 0], 400), shuffled=False, batch_size=20)
        assert finding.message == (
            "40 of the 40 batches of an epoch hold one class each: the 800 rows are sorted by label, and "
            "fit(shuffle=False) leaves them so. Each step biases the model towards one of the 2 classes, and the "
            "next class reverses it."
        )

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

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import TargetHistory, Verdicts
from diagnostics.facts.data import DatasetFacts, SampleWeights
from diagnostics.facts.pipeline import BatchFacts, LossFacts, OutputFacts
from diagnostics.rules.data.single_class_labels import SingleClassLabels

RULE = SingleClassLabels()
THREE = OutputFacts((8, 3), num_classes=3)
NAMES = ("entailment", "neutral", "contradiction")


class TestFromDataset:
    def test_is_an_error_where_every_row_was_read(self):
        rows = DatasetFacts(size=40, rows_read=40, labels=np.full(40, 1), label_names=NAMES)
        finding = RULE.from_dataset(rows, THREE)
        assert finding.severity == "error"
        assert finding.evidence == {
            "label": 1,
            "rows_read": 40,
            "size": 40,
            "spread_out": True,
            "num_classes": 3,
        }

    def test_is_a_note_for_a_single_output_as_of_a_discriminator(self):
        rows = DatasetFacts(size=40, rows_read=40, labels=np.ones(40, int))
        assert RULE.from_dataset(rows, OutputFacts((8, 1), 2, indexed_labels=False)).severity == "note"

    def test_is_a_warning_where_a_rare_class_may_have_been_missed(self):
        finding = RULE.from_dataset(DatasetFacts(8000, 512, labels=np.zeros(512, int)), THREE)
        assert finding.severity == "warning"

    def test_is_a_warning_about_the_first_rows_of_what_may_be_sorted(self):
        finding = RULE.from_dataset(DatasetFacts(None, 64, spread_out=False, labels=np.zeros(64, int)), THREE)
        assert finding.severity == "warning"

    def test_names_the_first_of_two_classes(self):
        rows = DatasetFacts(size=40, rows_read=40, labels=np.zeros(40, int), label_names=("ham", "spam"))
        assert RULE.from_dataset(rows, OutputFacts((8, 2), num_classes=2)).severity == "error"

    def test_gives_no_name_to_a_label_that_has_none(self):
        rows = DatasetFacts(size=40, rows_read=40, labels=np.full(40, 3), label_names=NAMES)
        assert RULE.from_dataset(rows, THREE).severity == "error"

    def test_is_silent_on_a_single_row_of_another_class(self):
        labels = np.zeros(40, int)
        labels[39] = 2
        assert RULE.from_dataset(DatasetFacts(40, 40, labels=labels), THREE) is None

    def test_needs_twenty_rows(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(19, 19, labels=np.zeros(19, int)), THREE)
        assert RULE.from_dataset(DatasetFacts(20, 20, labels=np.zeros(20, int)), THREE) is not None

    @pytest.mark.parametrize("weighted", [True, None], ids=["surely", "perhaps"])
    def test_needs_all_rows_where_a_sampler_draws_the_rare_ones_more_often(self, weighted):
        sampled = DatasetFacts(8000, 512, labels=np.zeros(512, int), weighted_sampling=weighted)
        with pytest.raises(NotApplicable):
            RULE.from_dataset(sampled, THREE)

    @pytest.mark.parametrize("labels", [None, np.zeros(40)], ids=["none", "floats"])
    def test_needs_one_class_label_a_row(self, labels):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(40, 40, labels=labels), THREE)

    @pytest.mark.parametrize("num_classes", [None, 1])
    def test_needs_a_model_of_several_classes(self, num_classes):
        rows = DatasetFacts(40, 40, labels=np.zeros(40, int))
        with pytest.raises(NotApplicable):
            RULE.from_dataset(rows, OutputFacts((8, 1), num_classes))


def binary(only_target, kind="binary_cross_entropy", outputs=1, alone=True, deviation=0.0):
    steps = np.arange(0, 200, 20)
    of_constant = np.full(steps.shape, deviation)
    targets = TargetHistory(kind, steps, steps * 0.0, of_constant, 640, outputs, only_target=only_target)
    return RULE.from_targets(targets, Verdicts(frozenset(), frozenset(), trained_alone=alone))


class TestFromTargets:
    def test_names_the_only_class_of_several(self):
        finding = binary(3.0, kind="cross_entropy", outputs=10)
        assert (finding.severity, finding.evidence["label"]) == ("warning", 3)

    def test_silent_if_one_row_in_a_thousand_is_of_another_class(self):
        assert binary(3.0, kind="cross_entropy", outputs=10, deviation=0.001) is None

    def test_silent_on_several_classes(self):
        assert binary(None, kind="cross_entropy", outputs=10) is None

    def test_tells_of_labels_that_are_all_0(self):
        finding = binary(0.0)
        assert finding.severity == "warning"

    def test_labels_that_are_all_1_may_be_pairs_in_order(self):
        assert binary(1.0).severity == "note"

    def test_silent_on_two_classes_and_on_a_smoothed_one(self):
        assert binary(None) is None
        assert binary(0.05) is None

    def test_not_applicable_to_players_in_turn_nor_to_several_outputs(self):
        with pytest.raises(NotApplicable):
            binary(0.0, alone=False)
        with pytest.raises(NotApplicable):
            binary(0.0, outputs=2)
        with pytest.raises(NotApplicable):
            binary(0.0, kind="cross_entropy")

    def test_tells_of_a_regression_to_one_number(self):
        finding = binary(0.0, kind="mean_squared_error")
        assert finding.severity == "warning"
        assert binary(-2.5, kind="mean_squared_error").severity == "warning"

    def test_silent_on_numbers_that_differ_by_little(self):
        """Returns by the minute, which are 0 to three digits."""
        assert binary(0.0, kind="mean_squared_error", deviation=3e-4**2) is None
        assert binary(None, kind="mean_squared_error") is None


class TestFromScaledTargets:
    LOSS = LossFacts(0.69, "binary_cross_entropy")

    def judged(self, *values, times=10, loss=LOSS, dtype="float32"):
        labels = np.array(values * times, dtype).reshape(-1, 1)
        return RULE.from_scaled_targets(BatchFacts(len(labels), {}, labels), loss)

    def test_names_masks_of_0_and_1_that_were_divided_like_pixels(self):
        finding = self.judged(0, 0, 0, 1 / 255)
        assert (finding.rule, finding.severity) == ("single-class-labels", "warning")
        assert finding.evidence == {"targets": [0.0, float(np.float32(1 / 255))], "share_of_the_higher": 0.25}

    @pytest.mark.parametrize(
        "values",
        [(0, 1), (0, 0.003, 0.007), (0, 0.5), (0.05, 0.95), (0,)],
        ids=["0/1", "rates", "half", "smooth", "0"],
    )
    def test_is_silent_on_other_targets(self, values):
        assert self.judged(*values, times=20) is None

    def test_needs_twenty_numbers(self):
        assert self.judged(0, 1 / 255, times=9) is None

    @pytest.mark.parametrize(("kind", "dtype"), [("mean_squared_error", "float32"), ("binary_cross_entropy", int)])
    def test_needs_floating_point_targets_under_binary_cross_entropy(self, kind, dtype):
        with pytest.raises(NotApplicable):
            self.judged(0, 1, loss=LossFacts(0.69, kind), dtype=dtype)


class TestFromRoundedTargets:
    LOSS = LossFacts(0.1, "mean_squared_error")

    def judged(self, targets, loss=LOSS):
        rows = DatasetFacts(size=5000, rows_read=len(targets), labels=np.array(targets))
        return RULE.from_rounded_targets(rows, loss)

    @pytest.mark.parametrize("others", [[], [1]])
    def test_names_targets_whose_fractions_were_cut_off(self, others):
        finding = self.judged(others + [0] * 300)
        assert finding.severity == "warning"
        assert finding.evidence == {"targets": 300 + len(others), "other_than_zero": len(others)}

    @pytest.mark.parametrize("others", [[1, 1], [2], [-1], [255]])
    def test_is_silent_on_rare_classes_and_on_counts(self, others):
        assert self.judged(others + [0] * 300) is None

    @pytest.mark.parametrize(
        ("targets", "kind"),
        [([0] * 99, "mean_squared_error"), ([0.0] * 300, "mean_squared_error"), ([0] * 300, "cross_entropy")],
    )
    def test_needs_many_integers_under_the_error_of_a_regression(self, targets, kind):
        with pytest.raises(NotApplicable):
            self.judged(targets, LossFacts(0.1, kind))


def weighed(**by_label):
    rows, zero = (sum(column) for column in zip(*by_label.values(), strict=True))
    return SampleWeights(10, 0, rows, zero, {int(label[1:]): counts for label, counts in by_label.items()})


def test_fires_where_the_weights_leave_one_class():
    finding = RULE.from_weights(weighed(_0=(240, 240), _1=(80, 0)))
    assert (finding.rule, finding.severity) == ("single-class-labels", "warning")


def test_silent_where_two_classes_count_or_rows_are_few():
    assert RULE.from_weights(weighed(_0=(240, 200), _1=(80, 0))) is None
    assert RULE.from_weights(weighed(_0=(240, 0), _1=(80, 0), _2=(80, 80))) is None
    assert RULE.from_weights(weighed(_0=(8, 8), _1=(80, 0))) is None
    assert RULE.from_weights(weighed(_1=(80, 40))) is None
    with pytest.raises(NotApplicable):
        RULE.from_weights(SampleWeights(10, 0, 320, 240))

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.rules.data.class_imbalance import ClassImbalance

RULE = ClassImbalance()
CROSS_ENTROPY = LossFacts(0.2, "cross_entropy")
TWO = OutputFacts((8, 2), num_classes=2)


def labelled(ham: int, spam: int) -> np.ndarray:
    return np.repeat([0, 1], [ham, spam])


class TestFromDataset:
    def test_says_what_the_constant_answer_would_score(self):
        rows = DatasetFacts(8000, 100, labels=labelled(95, 5), label_names=("ham", "spam"))
        finding = RULE.from_dataset(rows, CROSS_ENTROPY, TWO)
        assert finding.severity == "warning"
        assert finding.evidence == {
            "counts": {"0": 95, "1": 5},
            "majority_label": 0,
            "majority_share": 0.95,
            "rows_read": 100,
        }

    def test_is_a_note_where_a_single_output_may_only_rank(self):
        rows, single = DatasetFacts(100, 100, labels=labelled(95, 5)), OutputFacts((8, 1), 2, indexed_labels=False)
        finding = RULE.from_dataset(rows, LossFacts(0.2, "binary_cross_entropy"), single)
        assert finding.severity == "note"

    def test_leaves_out_rows_without_a_label(self):
        """As of a student that is trained on few labels and on the answers of a teacher."""
        labels = np.concatenate([labelled(60, 40), np.full(900, -1)])
        assert RULE.from_dataset(DatasetFacts(1000, 1000, labels=labels), CROSS_ENTROPY, TWO) is None

    def test_begins_at_nine_tenths(self):
        at, under = labelled(90, 10), labelled(89, 11)
        assert RULE.from_dataset(DatasetFacts(100, 100, labels=at), CROSS_ENTROPY, TWO) is not None
        assert RULE.from_dataset(DatasetFacts(100, 100, labels=under), CROSS_ENTROPY, TWO) is None

    @pytest.mark.parametrize(
        ("loss", "weighted_sampling"),
        [(LossFacts(0.2, "cross_entropy", class_weights=True), False), (CROSS_ENTROPY, True)],
        ids=["class weights", "a weighted sampler"],
    )
    def test_is_silent_where_something_makes_up_for_it(self, loss, weighted_sampling):
        rows = DatasetFacts(100, 100, labels=labelled(95, 5), weighted_sampling=weighted_sampling)
        assert RULE.from_dataset(rows, loss, TWO) is None

    @pytest.mark.parametrize(
        ("loss", "weighted_sampling"),
        [(LossFacts(0.2, "cross_entropy", class_weights=None), False), (CROSS_ENTROPY, None)],
        ids=["perhaps class weights", "perhaps a weighted sampler"],
    )
    def test_is_a_note_where_something_may_make_up_for_it(self, loss, weighted_sampling):
        rows = DatasetFacts(100, 100, labels=labelled(95, 5), weighted_sampling=weighted_sampling)
        finding = RULE.from_dataset(rows, loss, TWO)
        assert finding.severity == "note"

    def test_leaves_a_single_class_to_its_own_rule(self):
        assert RULE.from_dataset(DatasetFacts(60, 60, labels=labelled(60, 0)), CROSS_ENTROPY, TWO) is None

    def test_needs_fifty_rows(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(49, 49, labels=labelled(47, 2)), CROSS_ENTROPY, TWO)
        assert RULE.from_dataset(DatasetFacts(50, 50, labels=labelled(48, 2)), CROSS_ENTROPY, TWO) is not None

    def test_needs_rows_from_all_over(self):
        first = DatasetFacts(None, 64, spread_out=False, labels=labelled(60, 4))
        with pytest.raises(NotApplicable):
            RULE.from_dataset(first, CROSS_ENTROPY, TWO)

    def test_needs_cross_entropy(self):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(DatasetFacts(100, 100, labels=labelled(95, 5)), LossFacts(0.2, "other"), TWO)

    @pytest.mark.parametrize(
        ("labels", "num_classes"),
        [(None, 2), (labelled(95, 5).astype(float), 2), (labelled(95, 5), None)],
        ids=["no labels", "floats", "no classes"],
    )
    def test_needs_one_class_label_a_row(self, labels, num_classes):
        with pytest.raises(NotApplicable):
            RULE.from_dataset(
                DatasetFacts(100, 100, labels=labels), CROSS_ENTROPY, OutputFacts((8, 2), num_classes)
            )


def weighted(weights, labels=(540, 60)):
    rows = DatasetFacts(6000, 600, labels=labelled(*labels))
    return RULE.from_weights(rows, LossFacts(0.2, "cross_entropy", class_weights=True, weights=weights))


def of_three(weights, counts=(50, 150, 400)):
    rows = DatasetFacts(sum(counts), sum(counts), labels=np.repeat([0, 1, 2], counts))
    return RULE.from_weights(rows, LossFacts(0.9, "cross_entropy", class_weights=True, weights=tuple(weights)))


class TestWeights:
    def test_that_follow_the_number_of_labels(self):
        finding = weighted((0.9, 0.1))
        assert finding.severity == "warning"

    @pytest.mark.parametrize("weights", [(0.1, 0.9), (1.0, 1.0), (1.0, 0.4)])
    def test_silent_on_their_inverse_on_none_and_on_costs(self, weights):
        assert weighted(weights) is None

    @pytest.mark.parametrize("scale", [1 / 3, 1, 1 / 600], ids=["n / (k * count)", "n / count", "1 / count"])
    def test_balanced_in_another_order_than_the_class_ids(self, scale):
        finding = of_three(600 * scale / np.array([400, 150, 50]), (50, 400, 150))
        assert finding.severity == "warning"
        assert "class 2 has 25.0%" in finding.message

    @pytest.mark.parametrize(
        "weights",
        [600 / 3 / np.array([50, 150, 400]), (1.0, 1.0, 5.0), (4.0, 1.0, 1.0), (1.0, 1.0, 1.0)],
        ids=["their own order", "a costly common class", "a costly rare class", "equal"],
    )
    def test_silent_on_the_order_of_the_ids_and_on_costs(self, weights):
        assert of_three(weights) is None

    def test_silent_on_another_order_of_classes_that_chance_could_reverse(self):
        assert of_three(44 / 3 / np.array([20, 14, 10]), (14, 10, 20)) is None

    def test_not_applicable_without_weights_or_labels(self):
        with pytest.raises(NotApplicable):
            weighted(None)
        with pytest.raises(NotApplicable):
            weighted((0.9, 0.1), labels=(600, 0))

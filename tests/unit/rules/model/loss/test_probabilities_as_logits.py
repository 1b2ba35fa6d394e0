import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.rules.model.loss.probabilities_as_logits import ProbabilitiesAsLogits

RULE = ProbabilitiesAsLogits()
CROSS_ENTROPY = LossFacts(1.09, "cross_entropy", 1.08, reads="logits", name="CrossEntropyLoss")
BINARY = LossFacts(0.71, "binary_cross_entropy", 0.69, reads="logits", name="BCEWithLogitsLoss")
SUMMING = OutputFacts((8, 3), 3, (), 0.2, 0.5, sums_to_one=True)


class TestFires:
    def test_on_outputs_that_add_up_to_one(self):
        finding = RULE.from_loss(CROSS_ENTROPY, SUMMING)
        assert (finding.rule, finding.stage, finding.severity) == ("probabilities-as-logits", "model", "warning")
        assert finding.evidence == {
            "last_activation": None,
            "sums_to_one": True,
            "num_classes": 3,
            "loss": "CrossEntropyLoss",
            "loss_reads": "logits",
        }

    def test_on_a_sigmoid_under_a_binary_loss(self):
        outputs = OutputFacts((8, 1), None, (), 0.3, 0.7, last_activation="sigmoid")
        assert RULE.from_loss(BINARY, outputs).severity == "warning"

    def test_on_a_sigmoid_under_cross_entropy_over_ten_classes(self):
        outputs = OutputFacts((8, 10), 10, (), 0.3, 0.7, sums_to_one=False, last_activation="sigmoid")
        assert RULE.from_loss(CROSS_ENTROPY, outputs).severity == "warning"

    def test_and_words_the_fix_for_keras(self):
        loss = LossFacts(1.09, "cross_entropy", 1.08, reads="logits")
        assert RULE.from_loss(loss, SUMMING).severity == "warning"

    @pytest.mark.parametrize(
        ("last", "before"), [("softmax", "softmax"), ("logsoftmax", "softmax"), ("sigmoid", "sigmoid")]
    )
    def test_on_an_activation_applied_to_another(self, last, before):
        outputs = OutputFacts((8, 3), 3, last_activation=last, applied_to=before)
        for reads in ("probabilities", None):
            loss = LossFacts(1.09, "cross_entropy", 1.08, reads=reads)
            finding = RULE.from_loss(loss, outputs)
            assert (finding.severity, finding.evidence["applied_to"]) == ("warning", before)


class TestStaysSilent:
    @pytest.mark.parametrize(
        ("last", "before"),
        [("softmax", "linear"), ("softmax", "relu"), ("linear", "softmax"), ("logsoftmax", None)],
    )
    def test_on_one_activation_at_the_end(self, last, before):
        outputs = OutputFacts((8, 3), 3, last_activation=last, applied_to=before)
        assert RULE.from_loss(LossFacts(1.09, "cross_entropy", 1.08, reads="probabilities"), outputs) is None

    def test_where_keras_undoes_the_softmax_and_so_reads_probabilities(self):
        loss = LossFacts(1.09, "cross_entropy", 1.08, reads="probabilities", name="CategoricalCrossentropy")
        outputs = OutputFacts((8, 3), 3, (), 0.2, 0.5, sums_to_one=True, last_activation="softmax")
        assert RULE.from_loss(loss, outputs) is None

    @pytest.mark.parametrize(
        ("loss", "outputs"),
        [
            (CROSS_ENTROPY, OutputFacts((8, 3), 3, (), -1.3, 0.9, sums_to_one=False, last_activation="linear")),
            (CROSS_ENTROPY, OutputFacts((8, 3), 3, (), 0.1, 0.9, sums_to_one=False)),
            (CROSS_ENTROPY, OutputFacts((8, 3), 3, (), 0.0, 4.0, sums_to_one=False, last_activation="relu")),
            (BINARY, OutputFacts((4, 1), None, (), 0.1, 0.4)),  # small logits, all above 0 by chance
        ],
    )
    def test_on_logits(self, loss, outputs):
        assert RULE.from_loss(loss, outputs) is None


def test_needs_to_know_what_the_loss_reads():
    with pytest.raises(NotApplicable):
        RULE.from_loss(LossFacts(0.5, "other"), SUMMING)

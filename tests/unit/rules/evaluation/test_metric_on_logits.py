import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.pipeline import LossFacts, OutputFacts
from diagnostics.facts.trials import MetricFacts
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.evaluation.metric_on_logits import MetricOnLogits
from tests.support.sources import written

RULE = MetricOnLogits()
MIX = "Classification metrics can't handle a mix of multiclass and continuous-multioutput targets"
CRASH = CrashFacts("ValueError", MIX, (FrameFacts("train.py", 12, "compute_metrics", yours=True),), live=True)


class TestFromMetric:
    def test_tells_of_a_metric_that_fails_on_logits(self):
        finding = RULE.from_metric(MetricFacts(None, {"accuracy": 1.0}, f"ValueError: {MIX}\nmore"))
        assert finding.severity == "error"
        assert finding.evidence["on_classes"] == {"accuracy": 1.0}

    @pytest.mark.parametrize("top", [1.0, 100.0], ids=["fraction", "percent"])
    def test_tells_of_a_metric_that_gives_logits_less_than_they_deserve(self, top):
        finding = RULE.from_metric(MetricFacts({"accuracy": 0.125}, {"accuracy": top}))
        assert finding.evidence == {"on_logits": {"accuracy": 0.125}, "on_classes": {"accuracy": top}}

    @pytest.mark.parametrize(
        "metric",
        [
            MetricFacts({"accuracy": 1.0}, {"accuracy": 1.0}),
            MetricFacts({"accuracy": 1.0}, {"accuracy": 0.25}),
            MetricFacts({"accuracy": 1.0}, None),
            MetricFacts({"log_loss": 0.01}, {"log_loss": 0.6}),
            MetricFacts({"perplexity": 1.0}, {"rows": 1.0}),
        ],
        ids=["both right", "takes an argmax", "fails on classes", "less is better", "other names"],
    )
    def test_is_silent_on_a_metric_that_takes_logits(self, metric):
        assert RULE.from_metric(metric) is None

    def test_needs_an_answer_to_one_of_the_questions(self):
        with pytest.raises(NotApplicable):
            RULE.from_metric(MetricFacts(None, None, "KeyError: 'labels'"))


def test_tells_of_an_argmax_over_the_only_score():
    argmax = written("constant_argmax", "outputs", line=40)
    finding = RULE.from_source(argmax, OutputFacts((32, 1), 2))
    assert finding.severity == "warning"
    assert finding.where.line == 40
    for shape in ((16, 2), (16,), (16, 9, 1)):
        assert RULE.from_source(argmax, OutputFacts(shape, 2)) is None
    assert RULE.from_source(argmax) is None
    assert RULE.from_source(WrittenPatterns()) is None


def test_tells_of_probabilities_that_are_cast_to_integers():
    cast = written("truncated_probabilities", "model.predict(x)")
    finding = RULE.from_source(cast, OutputFacts((16, 1), 2, last_activation="sigmoid"))
    assert finding.severity == "warning"
    for activation in (None, "linear", "relu"):
        assert RULE.from_source(cast, OutputFacts((16, 1), 2, last_activation=activation)) is None


@pytest.mark.parametrize("how", ["round", "0.5"])
def test_tells_of_logits_that_are_taken_for_probabilities(how):
    half = written("thresholded_logits", "out", how)
    logits = LossFacts(0.7, "binary_cross_entropy", reads="logits")
    finding = RULE.from_source(half, None, logits)
    assert finding.severity == "warning"
    assert RULE.from_source(half, OutputFacts((16, 1), 2, last_activation="linear")) is None
    assert (
        RULE.from_source(half, OutputFacts((16, 1), 2, last_activation="sigmoid"), logits) is None
    )  # another rule

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.layers import ActivationFacts, ActivityFacts, LayerActivity, LayerFacts
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.rules.model.dead_units import DeadUnits
from tests.support.courses import answers, history, judge

RULE = DeadUnits()
BATCH = BatchFacts(32, {"0": np.zeros((32, 64))})


def relu(layer: str, dead: int, units: int = 64, function: str = "relu") -> ActivationFacts:
    return ActivationFacts(layer, function, units, dead, 0)


class TestFires:
    def test_and_names_the_layers(self):
        finding = RULE.from_layers(LayerFacts((relu("1", 62), relu("3", 20), relu("5", 32, 32))), BATCH)
        assert (finding.rule, finding.severity, finding.stage) == ("dead-units", "warning", "model")
        assert finding.evidence == {
            "layers": {"1": {"dead": 62, "units": 64}, "5": {"dead": 32, "units": 32}},
            "examples": 32,
        }

    def test_and_names_at_most_five(self):
        layers = LayerFacts(tuple(relu(str(number), 64) for number in range(7)))
        assert RULE.from_layers(layers, BATCH).severity == "warning"

    def test_only_as_a_note_in_a_trained_transformer(self):
        model = ModelFacts("OPTForCausalLM", "transformers", 9, 9)
        assert RULE.from_layers(LayerFacts((relu("fc1", 3000, 3072),)), BATCH, model).severity == "note"

    def test_from_nine_tenths_on(self):
        assert RULE.from_layers(LayerFacts((relu("1", 90, 100, "ReLU6"),)), BATCH) is not None
        assert RULE.from_layers(LayerFacts((relu("1", 89, 100, "ReLU6"),)), BATCH) is None


class TestStaysSilent:
    @pytest.mark.parametrize(("dead", "units"), [(25, 32), (74, 128), (42, 64)])
    def test_on_what_healthy_initialisation_shows(self, dead, units):
        assert RULE.from_layers(LayerFacts((relu("1", dead, units),)), BATCH) is None


class TestNotApplicable:
    @pytest.mark.parametrize("layer", [relu("1", 16, 16), relu("1", 64, function="tanh")])
    def test_to_narrow_layers_and_other_functions(self, layer):
        with pytest.raises(NotApplicable):
            RULE.from_layers(LayerFacts((layer,)), BATCH)

    def test_to_fewer_than_eight_examples(self):
        with pytest.raises(NotApplicable):
            RULE.from_layers(LayerFacts((relu("1", 64),)), BatchFacts(7, {}))


def activity(dead, units=64, examples=32, function="relu", layer="1"):
    count = len(dead)
    return ActivityFacts(
        (
            LayerActivity(
                layer, function, True, np.arange(count) * 20, np.full(count, units), np.full(count, examples),
                np.array(dead), np.zeros(count, int),
            ),
        )
    )  # fmt: skip


class TestWhileTraining:
    def test_fires_on_units_that_stay_dead(self):
        finding = judge(RULE.from_activity, activity([64, 64, 62, 64]))
        assert (finding.rule, finding.severity, finding.step) == ("dead-units", "warning", 0)
        assert finding.evidence["steps"] == [0, 20, 40, 60]

    def test_says_when_it_began(self):
        assert judge(RULE.from_activity, activity([10, 12, 64, 64, 64])).severity == "warning"

    @pytest.mark.parametrize(("error", "severity"), [(0.89, "note"), (0.2, "warning")])
    def test_leads_to_targets_that_no_fit_learns(self, error, severity):
        fit = SimpleFit(200, 200, 0.9, error, linear=True, of_classes=True)
        numbers = np.ones(5)
        targets = TargetHistory("cross_entropy", np.arange(5), numbers, numbers, 100, 10, fit)
        died = judge(RULE.from_activity, activity([10, 12, 64, 64, 64]), targets)
        assert died.severity == severity
        from_the_start = judge(RULE.from_activity, activity([64] * 5), targets)
        assert from_the_start.severity == "warning"

    def test_is_silent_on_units_that_come_back(self):
        assert judge(RULE.from_activity, activity([64, 64, 64, 30])) is None

    def test_is_not_applicable_to_few_looks_narrow_layers_and_small_batches(self):
        for facts in (activity([64, 64]), activity([15] * 5, units=16), activity([63] * 5, examples=4)):
            with pytest.raises(NotApplicable):
                judge(RULE.from_activity, facts)

    def test_fires_on_a_small_layer_that_is_dead_as_a_whole(self):
        assert (
            judge(RULE.from_activity, activity([4] * 16, units=4, examples=4, layer="input of fc2")).severity
            == "warning"
        )

    def test_needs_64_examples_since_a_small_layer_has_died(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_activity, activity([3, *[4] * 15], units=4, examples=4))
        assert judge(RULE.from_activity, activity([3, *[4] * 16], units=4, examples=4)) is not None


class TestFromAnswers:
    """Of a ReLU between the last layer and a cross entropy."""

    def judged(self, given, activation="relu", labels=(16, 16, 32), complete=True):
        return judge(
            RULE.from_answers,
            history([1.0] * 100),
            answers([1.0] * 5, labels, given=given),
            OutputFacts((32, 3), 3, last_activation=activation),
            LossFacts(1.1, "cross_entropy", reads="logits"),
            Verdicts(frozenset(), frozenset(), complete=complete),
        )

    def test_names_the_classes_that_are_never_answered(self):
        finding = self.judged((32, 0, 32))
        assert (finding.rule, finding.severity) == ("dead-units", "warning")
        assert self.judged((0, 0, 64)).severity == "warning"

    def test_silent_where_every_class_is_answered_or_the_missed_one_is_rare(self):
        assert self.judged((31, 1, 32)) is None
        assert self.judged((32, 0, 32), labels=(31, 1, 32)) is None

    def test_needs_a_relu_and_a_run_to_its_end(self):
        with pytest.raises(NotApplicable):
            self.judged((32, 0, 32), activation="linear")
        with pytest.raises(NotApplicable):
            self.judged((32, 0, 32), complete=False)

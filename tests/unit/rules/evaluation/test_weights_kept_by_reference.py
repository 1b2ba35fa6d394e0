import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import ObjectLedger, RestoredWeights, RestoreFacts
from diagnostics.facts.where import Where
from diagnostics.facts.written import WrittenPatterns
from diagnostics.rules.evaluation.weights_kept_by_reference import WeightsKeptByReference
from tests.support.courses import judge
from tests.support.sources import written

RULE = WeightsKeptByReference()


def restored(taken=96, used=480, by_itself=True, times=3):
    where = Where("train.py", 28, "<module>")
    return RestoreFacts(1, (RestoredWeights(taken, used, by_itself, times, 4, where),), 1)


class TestFires:
    def test_on_a_target_network_that_is_loaded_with_its_own_weights(self):
        ledger = ObjectLedger("QNetwork", self_loads=12, where=Where("train.py", 28, "learn"))
        finding = RULE.from_self_loads(ledger)
        assert (finding.rule, finding.severity) == ("weights-kept-by-reference", "warning")

    def test_on_weights_loaded_into_their_own_model(self):
        finding = judge(RULE.from_restores, restored())
        assert (finding.rule, finding.severity, finding.step) == ("weights-kept-by-reference", "warning", 479)
        assert str(finding.where) == "train.py:28"

    def test_on_weights_taken_before_the_first_step(self):
        assert judge(RULE.from_restores, restored(taken=0)).severity == "warning"

    def test_on_another_model_that_gets_them(self):
        assert judge(RULE.from_restores, restored(by_itself=False)).severity == "warning"

    def test_on_weights_that_are_the_best_by_chance(self):
        finding = judge(RULE.from_restores, restored(taken=480))
        assert finding.severity == "warning"

    @pytest.mark.parametrize("held", [4, 8])
    def test_on_state_dicts_that_are_collected(self, held):
        where = Where("train.py", 28, "<module>")
        finding = judge(RULE.from_restores, RestoreFacts(0, (), 0, held, where))
        assert (finding.severity, finding.evidence, finding.where) == ("warning", {"held": held}, where)


class TestSilent:
    def test_where_a_few_checkpoints_are_variables(self):
        assert judge(RULE.from_restores, RestoreFacts(0, (), 0, 3)) is None

    def test_where_no_weights_were_stale(self):
        assert judge(RULE.from_restores, RestoreFacts(12, (), 0)) is None

    def test_where_another_model_gets_weights_that_were_taken_once(self):
        assert judge(RULE.from_restores, restored(by_itself=False, times=1)) is None


def test_not_applicable_without_any_load():
    with pytest.raises(NotApplicable, match="needs calls of load_state_dict"):
        judge(RULE.from_restores)


class TestSource:
    def test_a_model_kept_under_a_second_name(self):
        kept = written("kept_models", "best_model", "model", line=31, function="main")
        finding = RULE.from_source(kept)
        assert (finding.rule, finding.severity, str(finding.where)) == (
            "weights-kept-by-reference",
            "warning",
            "train.py:31 in main",
        )

    def test_silent_where_nothing_is_kept(self):
        assert RULE.from_source(WrittenPatterns()) is None

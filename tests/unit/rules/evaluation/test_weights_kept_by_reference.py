import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import IdleLoads, RestoredWeights, RestoreFacts
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
        finding = RULE.from_idle(IdleLoads("QNetwork", 12, Where("train.py", 28, "learn")))
        assert (finding.rule, finding.severity) == ("weights-kept-by-reference", "warning")
        assert finding.message == (
            "`load_state_dict` was called 12 times on a QNetwork with what its own `state_dict()` gives, which "
            "changes nothing. Another instance of the same layers is trained, and this one, such as a target "
            "network, still has the weights that it had before."
        )
        assert finding.fix == "target.load_state_dict(policy.state_dict())  # of the trained one"

    def test_on_weights_loaded_into_their_own_model(self):
        finding = judge(RULE.from_restores, restored())
        assert (finding.rule, finding.severity, finding.step) == ("weights-kept-by-reference", "warning", 479)
        assert finding.message == (
            "`load_state_dict` got weights that `state_dict()` had given after step 96, and they are the model's "
            "own memory, not a copy: the 384 steps since have changed them, too. The load changed none of the 4 "
            "parameters: the model still has the weights of step 480."
        )
        assert finding.fix == "copy.deepcopy(model.state_dict())"
        assert str(finding.where) == "train.py:28"

    def test_on_weights_taken_before_the_first_step(self):
        assert "had given before the first step, and" in judge(RULE.from_restores, restored(taken=0)).message

    def test_on_another_model_that_gets_them(self):
        finding = judge(RULE.from_restores, restored(by_itself=False))
        assert finding.message.endswith("The other model got the weights of step 480, not those that were kept.")

    def test_on_weights_that_are_the_best_by_chance(self):
        finding = judge(RULE.from_restores, restored(taken=480))
        assert finding.severity == "warning"
        assert finding.message.endswith(
            "not a copy: those of 3 different steps were kept, and all are one. The load changed nothing; in this "
            "run the latest weights happen to be the ones to keep."
        )


class TestSilent:
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
        assert finding.message == (
            "`best_model` is kept in the loop without a copy: it is `model` itself, which goes on training. "
            "After the loop it holds the weights of the last step, not the best ones."
        )
        assert finding.fix == "best_model = copy.deepcopy(model)"

    def test_silent_where_nothing_is_kept(self):
        assert RULE.from_source(WrittenPatterns()) is None

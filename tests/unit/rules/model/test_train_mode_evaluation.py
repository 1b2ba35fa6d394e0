import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import TrainingModeCalls
from diagnostics.facts.course import Verdicts
from diagnostics.facts.dependence import ActiveDropout, DependenceFacts, RandomStateFacts
from diagnostics.facts.layers import TrainModeFacts
from diagnostics.facts.where import Where
from diagnostics.rules.model.train_mode_evaluation import TrainModeEvaluation
from tests.support.courses import answers, history, judge

RULE = TrainModeEvaluation()
DROPOUT = TrainModeFacts(("drop",), (False,), np.arange(8), np.ones(8, int))
NORM = TrainModeFacts(("bn", "drop"), (True, False), np.arange(8), np.full(8, 2))


def run(passes=20, wrong=20, rounds=4, steps=400, **known):
    counts = {"no_grad_passes": passes, "no_grad_passes_in_training_mode": wrong, "no_grad_rounds": rounds}
    return history([1.0] * steps, **counts, **known)


class TestFires:
    def test_on_batch_norm_that_learns_from_the_evaluation(self):
        finding = judge(RULE.from_modes, run(), NORM)
        assert (finding.rule, finding.severity) == ("train-mode-evaluation", "warning")
        assert finding.message == (
            "All 20 forward passes without gradients (in evaluations after 4 of the 400 steps) ran in training "
            "mode, in which "
            "some layers (bn and drop) behave differently. So the metrics do not reflect the model in evaluation "
            "mode, and batch norm updated its statistics with this data. torch.no_grad() does not change the mode."
        )
        assert finding.fix == "model.eval()  # before evaluation; afterwards model.train()"

    def test_as_a_note_on_dropout_which_may_be_meant(self):
        assert judge(RULE.from_modes, run(), DROPOUT).severity == "note"

    @pytest.mark.parametrize(
        ("passes", "examples", "severity"),
        [(4, 32, "note"), (4, 33, "warning"), (4, 0, "warning"), (20, 32, "warning")],
    )
    def test_as_a_note_on_single_passes_of_a_batch_at_most_as_on_samples_of_a_generator(
        self, passes, examples, severity
    ):
        looks = run(passes=passes, wrong=passes, no_grad_examples=examples)
        assert judge(RULE.from_modes, looks, NORM).severity == severity

    def test_as_a_warning_on_dropout_if_the_evaluation_was_handed_over(self):
        evaluated = run(evaluation_steps=np.array([99]), evaluation_losses=np.array([0.5]))
        assert judge(RULE.from_modes, evaluated, DROPOUT).severity == "warning"

    def test_as_a_warning_on_dropout_if_each_pass_had_another_input(self):
        assert judge(RULE.from_modes, run(no_grad_repeated=False), DROPOUT).severity == "warning"
        assert judge(RULE.from_modes, run(no_grad_repeated=True), DROPOUT).severity == "note"

    def test_on_one_evaluation_after_the_last_step(self):
        last = {"no_grad_last_step": 400, "no_grad_last_passes": 7, "no_grad_last_in_training_mode": True}
        finding = judge(RULE.from_modes, run(7, 7, 1, **last), NORM)
        assert (finding.severity, finding.evidence["passes"]) == ("warning", 7)
        assert finding.message.startswith(
            "The last 7 forward passes without gradients (after the last step) ran in training mode, in which "
            "some layers (bn and drop) behave differently. So the metrics do not reflect the model in evaluation "
            "mode"
        )
        after_right_ones = judge(RULE.from_modes, run(50, 7, 5, **last), DROPOUT)
        assert after_right_ones.severity == "note"

    def test_on_a_single_pass_after_the_last_step_if_the_model_is_a_classifier(self):
        last = {"no_grad_last_step": 400, "no_grad_last_passes": 1, "no_grad_last_in_training_mode": True}
        assert judge(RULE.from_modes, run(1, 1, 1, **last), NORM, answers([1.0] * 20)) is not None
        with pytest.raises(NotApplicable):
            judge(RULE.from_modes, run(1, 1, 1, **last), NORM)


class TestSilent:
    def test_on_a_last_evaluation_in_its_own_mode(self):
        last = {"no_grad_last_step": 400, "no_grad_last_passes": 7, "no_grad_last_in_training_mode": False}
        assert judge(RULE.from_modes, run(50, 6, 5, **last), NORM) is None

    def test_on_an_evaluation_in_its_own_mode(self):
        assert judge(RULE.from_modes, run(wrong=0), NORM) is None

    def test_where_only_a_few_passes_were_in_training_mode(self):
        assert judge(RULE.from_modes, run(wrong=2), NORM) is None

    def test_on_passes_that_belong_to_the_training_steps(self):
        # Pseudo-labels, or self-conditioning: one with every step.
        assert judge(RULE.from_modes, run(passes=400, wrong=400, rounds=400), NORM) is None

    def test_where_no_layer_minds(self):
        assert judge(RULE.from_modes, run(), TrainModeFacts((), (), np.arange(8), np.zeros(8, int))) is None


@pytest.mark.parametrize("known", [{"rounds": 1}, {"steps": 19}])
def test_not_applicable_before_there_was_an_evaluation_or_two(known):
    with pytest.raises(NotApplicable):
        judge(RULE.from_modes, run(**known), NORM)


class TestFunctionalDropout:
    VERDICTS = Verdicts(frozenset(), frozenset())

    def judged(self, *dropout, noise=0.4, verdicts=VERDICTS, repeated=False, why=None):
        dependence = DependenceFacts(dropout=dropout, noise=noise, why_not=why or {})
        course = run(20, 0, 4, no_grad_repeated_in_evaluation=repeated)
        return judge(RULE.from_functions, dependence, course, verdicts)

    def test_that_does_not_know_the_mode_is_found(self):
        finding = self.judged(ActiveDropout("dropout", 0.5, "nothing", Where("net.py", 7, "forward")))
        assert (finding.severity, finding.where.line) == ("warning", 7)

    def test_in_attention_is_found(self):
        assert (
            self.judged(
                ActiveDropout("scaled_dot_product_attention", 0.1, "nothing"),
                ActiveDropout("dropout", 0.1, "nothing"),
            ).severity
            == "warning"
        )

    def test_is_a_note_where_passes_repeat_or_the_mode_is_given(self):
        assert self.judged(ActiveDropout("dropout", 0.5, "nothing"), repeated=True).severity == "note"
        assert self.judged(ActiveDropout("dropout", 0.5, "something")).severity == "note"

    def test_is_left_alone_where_it_is_meant_or_changes_nothing(self):
        assert self.judged(ActiveDropout("dropout", 0.5, "always")) is None
        assert self.judged(ActiveDropout("dropout", 0.5, "nothing"), noise=0.0) is None
        assert self.judged(noise=0.0) is None

    def test_gives_way_to_an_evaluation_in_training_mode(self):
        found = Verdicts(frozenset({"train-mode-evaluation"}), frozenset())
        assert self.judged(ActiveDropout("dropout", 0.5, "nothing"), verdicts=found) is None

    def test_is_not_applicable_where_the_model_was_not_run(self):
        with pytest.raises(NotApplicable):
            self.judged(noise=None, why={"dropout": "the model cannot be copied"})


class TestRandomStates:
    def state(self, change, has_target=True):
        return DependenceFacts(random_state=RandomStateFacts("lstm (LSTM)", "randn", change, 0.5, has_target))

    def test_a_warning_where_the_answers_change_by_much(self):
        finding = judge(RULE.from_states, self.state(0.3))
        assert (finding.rule, finding.severity) == ("train-mode-evaluation", "warning")

    @pytest.mark.parametrize("state", [(0.01, True), (0.3, False)], ids=["little", "perhaps a generator"])
    def test_a_note_elsewhere(self, state):
        assert judge(RULE.from_states, self.state(*state)).severity == "note"

    def test_nothing_where_the_answers_forget_it(self):
        assert judge(RULE.from_states, self.state(1e-6)) is None

    def test_not_applicable_without_one(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_states, DependenceFacts())


class TestKerasCalls:
    def test_that_evaluate_in_training_mode_are_named(self):
        finding = RULE.from_calls(TrainingModeCalls(27, 540, False, ("norm", "drop"), (True, False)))
        assert (finding.rule, finding.severity) == ("train-mode-evaluation", "warning")

    def test_of_one_input_several_times_are_a_note(self):
        assert RULE.from_calls(TrainingModeCalls(30, 6000, True, ("drop",), (False,))).severity == "note"

    def test_for_a_few_rows_are_ignored(self):
        assert RULE.from_calls(TrainingModeCalls(1, 8, False, ("drop",), (False,))) is None

import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.calls import ClipFacts
from diagnostics.facts.course import SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.optimizer.learning_rate_too_low import LearningRateTooLow
from tests.support.courses import answers, history, judge

RULE = LearningRateTooLow()
LOSS = LossFacts(2.2928, "cross_entropy", 2.0897)
SGD = OptimizerFacts("SGD", (1e-6,), {}, 4, 0)
FITS = SimpleFit(120, 120, 1.0, 0.2, linear=True, of_classes=False)
FAILS = SimpleFit(120, 120, 1.0, 0.98, linear=False, of_classes=False)
LEARNS = tuple(np.geomspace(2.2928, 1.0, 12).tolist())


def trial(fall, ratio, rate=1e-6, better_rate=1e-2, better_losses=LEARNS, warms_up=False):
    """Thirty losses that lose `fall` of the first, in a straight line."""
    losses = tuple(np.linspace(2.2928, 2.2928 * (1 - fall), 30).tolist())
    return TrialFacts(rate, losses, (ratio,) * 29, better_rate, better_losses, warms_up)


def ended(losses=None, fit=FITS, update=1e-5, better_rate=0.1, constant=1.0):
    values = np.linspace(3.0, 2.8, 200) if losses is None else losses
    steps = np.arange(0, 200, 20)
    targets = TargetHistory("mean_squared_error", steps, values[steps], np.full(10, constant), 320, 1, fit)
    tried = TrialFacts(1e-3, (3.0, 2.99), (update,), better_rate, (3.0, 0.2), False)
    course = history(values, rates=1e-3, update=update)
    return judge(RULE.from_ended_run, course, targets, tried, Verdicts(frozenset(), frozenset()))


class TestFiresOnAnEndedRun:
    def test_that_hardly_moved_and_is_worse_than_a_constant(self):
        finding = ended()
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        "other",
        [
            {"update": 1e-2},
            {"fit": None, "constant": 2.7},
            {"fit": FAILS, "constant": 2.7},
            {"better_rate": 5e-3},
            {"better_rate": None},
            {"constant": 4.0},
        ],
        ids=["moved", "unknown", "unlearnable", "a rate nearby", "no rate", "learned"],
    )
    def test_but_not_where_one_of_these_is_otherwise(self, other):
        assert ended(**other) is None

    @pytest.mark.parametrize("fit", [None, FAILS])
    def test_nor_need_a_fit_show_more_than_that_a_constant_is_far_better(self, fit):
        assert ended(fit=fit, constant=2.5).rule == "learning-rate-too-low"


def warming(rates=None, update=1e-5, late=1.0, full=5e-4, complete=True, steps=90):
    rates = np.linspace(5e-8, 4.5e-6, steps) if rates is None else rates
    at = np.arange(0, steps, 20)
    values = np.linspace(1.4, late, steps)
    targets = TargetHistory("cross_entropy", at, values[at], np.full(len(at), 1.0), 320, 4)
    adam = OptimizerFacts("AdamW", (0.0,), {}, 4, 0, full_rate=full)
    verdicts = Verdicts(frozenset(), frozenset(), complete)
    return judge(RULE.from_warm_up, history(values, rates=rates, update=update), targets, adam, verdicts)


class TestFiresOnAWarmUpLongerThanTheRun:
    def test_that_learned_nothing(self):
        finding = warming()
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        "other",
        [
            {"rates": np.geomspace(1e-6, 10, 90), "update": 0.2},
            {"rates": np.concatenate([np.linspace(0, 1e-3, 30), np.full(60, 1e-3)])},
            {"rates": np.concatenate([np.linspace(0, 1e-5, 80), np.linspace(1e-5, 0, 10)])},
            {"full": 1e-6},
        ],
        ids=["a test of rates", "over in time", "falls", "full"],
    )
    def test_but_not_where_one_of_these_is_otherwise(self, other):
        assert warming(**other) is None

    @pytest.mark.parametrize("other", [{"late": 0.4}, {"update": np.array([1e-6, 1e-6, 1e-6, 1e-5, 1e-1])}])
    def test_as_a_note_if_it_learned_or_moved(self, other):
        finding = warming(**other)
        assert finding.severity == "note"
        assert "constant prediction" not in finding.message

    @pytest.mark.parametrize("other", [{"complete": False}, {"steps": 40}])
    def test_nor_in_a_run_that_was_cut_off_or_is_a_test(self, other):
        with pytest.raises(NotApplicable):
            warming(**other)

    def test_nor_where_no_schedule_is_attached(self):
        with pytest.raises(NotApplicable):
            warming(full=None)


class TestFires:
    def test_where_ten_thousand_steps_would_lead_nowhere(self):
        # Measured: SGD at 1e-6 on an MLP of 784, 128 and 10 units.
        finding = RULE.from_trial(trial(5.6e-5, 3.8e-7), LOSS, ModelFacts("MLP", "torch", 9, 9), SGD)
        assert (finding.rule, finding.stage, finding.severity) == ("learning-rate-too-low", "optimizer", "warning")
        assert finding.evidence["largest_update_ratio"] == 3.8e-7
        assert finding.evidence["better_rate"] == 1e-2

    @pytest.mark.parametrize(
        ("fall", "ratio"),
        [(5.6e-4, 3.8e-6), (6.4e-4, 3.4e-6), (1.55e-3, 5e-7)],
        ids=["SGD at 1e-5", "Adam at 1e-7", "AdamW at 1e-8, a DistilBERT of 6 layers, 512 wide"],
    )
    def test_on_other_rates_that_were_measured(self, fall, ratio):
        assert RULE.from_trial(trial(fall, ratio), LOSS) is not None

    def test_where_nothing_moves_at_all(self):
        assert RULE.from_trial(trial(0.0, 0.0), LOSS).severity == "warning"

    def test_where_the_loss_rises_by_rounding(self):
        assert RULE.from_trial(trial(-1e-7, 1e-8), LOSS) is not None


class TestStaysSilent:
    @pytest.mark.parametrize(
        ("fall", "ratio"),
        [
            (5.6e-3, 3.8e-5),  # SGD at 1e-4 on that MLP: slow, but a long run gets there
            (6.3e-3, 3.4e-5),  # Adam at 1e-6 on it
            (0.03, 1e-3),  # AdamW at 2e-5 on a pretrained transformer
            (1e-4, 1e-3),  # the same, on a plateau: the weights do move
            (0.02, 4e-6),  # SGD at 1e-3 on a pretrained transformer: small steps that pay
        ],
    )
    def test_on_rates_that_get_somewhere(self, fall, ratio):
        assert RULE.from_trial(trial(fall, ratio), LOSS) is None

    def test_where_the_better_rate_is_not_ten_times_as_large(self):
        assert RULE.from_trial(trial(0.0, 1e-8, better_rate=5e-6), LOSS) is None

    def test_where_no_other_rate_learns_the_batch_either(self):
        assert RULE.from_trial(trial(0.0, 1e-8, better_rate=None, better_losses=()), LOSS) is None
        assert RULE.from_trial(trial(0.0, 1e-8, better_losses=(2.29, 2.0)), LOSS) is None


@pytest.mark.parametrize("warms_up", [True, None])
def test_is_not_applicable_to_a_rate_that_may_warm_up(warms_up):
    with pytest.raises(NotApplicable):
        RULE.from_trial(trial(0.0, 0.0, warms_up=warms_up), LOSS)


class TestWhileTraining:
    def test_fires_on_a_classifier_that_stays_where_it_began(self):
        run = history([0.7] * 400, update=2e-8, rates=1e-7)
        finding = judge(RULE.from_history, run, answers([0.7] * 20), None, SGD)
        assert (finding.rule, finding.severity) == ("learning-rate-too-low", "warning")

    def test_is_a_note_where_the_chance_level_is_not_known(self):
        finding = judge(RULE.from_history, history([0.7] * 400, update=2e-8))
        assert finding.severity == "note"

    @pytest.mark.parametrize(
        ("losses", "norms", "severity"),
        [
            ([0.7] * 400, [0.5, 2.0, 8.0], "warning"),
            ([0.7] * 400, [0.05, 2.0, 8.0], "note"),  # one is hardly clipped
            ([0.7] * 400, [0.02, 0.03], "note"),
            ([1.0] * 4000 + [0.6] * 16_000, [0.5, 2.0, 8.0], "note"),  # it learned, and has ended
        ],
        ids=["all", "all but one", "a little", "after learning"],
    )
    def test_blames_the_clipping_that_makes_all_steps_small(self, losses, norms, severity):
        clips = ClipFacts("", math.nan, 400, 0, np.zeros(0), False, None, 1e-3, np.array(norms))
        finding = judge(RULE.from_history, history(losses, update=2e-8), clips)
        assert finding.severity == severity
        assert (finding.evidence["clipped_to"] == 1e-3) == (np.median(norms) >= 0.1)

    @pytest.mark.parametrize(
        ("losses", "update"),
        [
            ([0.7] * 400, np.geomspace(1e-3, 1e-9, 20)),  # a schedule down to zero
            ([0.7] * 400, 4e-4),  # fine-tuning
            ([0.7] * 400, 0.0),  # nothing changes at all: another rule's business
            (np.linspace(1.0, 0.9, 400), 1e-6),  # on its way
        ],
    )
    def test_is_silent_on_a_run_that(self, losses, update):
        assert judge(RULE.from_history, history(losses, update=update)) is None

    @pytest.mark.parametrize(("fastest", "silent"), [(1e-3, True), (2e-6, False)])
    def test_is_silent_where_the_last_layers_move_and_no_gradient_reaches_the_first(self, fastest, silent):
        ratios = np.tile(fastest * np.geomspace(1e-8, 1, 12, dtype=np.float32), (20, 1))
        layers, norms = tuple("abcdefghijkl"), np.ones_like(ratios)
        run = history([0.7] * 400, layers=layers, update_ratios=ratios, weight_norms=norms)
        assert (judge(RULE.from_history, run, answers([0.7] * 20)) is None) == silent

    def test_is_silent_on_a_classifier_that_has_learned_already(self):
        assert judge(RULE.from_history, history([0.1] * 400, update=1e-7), answers([0.1] * 20)) is None

    def test_is_not_applicable_while_the_rate_warms_up(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, history([0.7] * 400, update=1e-7, rates=np.linspace(0, 1, 400)))

    def test_is_not_applicable_to_a_short_run(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, history([0.7] * 99, update=1e-7))


def climbing(rates, full=0.1, complete=True):
    adam = OptimizerFacts("SGD", (0.004,), {}, 4, 0, full_rate=full)
    verdicts = Verdicts(frozenset(), frozenset(), complete)
    return judge(RULE.from_staircase, history(np.ones(len(rates)), rates=rates), verdicts, adam)


class TestFiresOnAScheduleOfBatchesThatIsSteppedOnceAnEpoch:
    def test_whatever_the_loss(self):
        finding = climbing(np.repeat(np.linspace(0.004, 0.0047, 8), 60))
        assert finding.severity == "warning"

    @pytest.mark.parametrize(
        "rates",
        [
            np.linspace(0.004, 0.0047, 480),
            np.repeat(np.linspace(0.01, 0.08, 8), 60),
            np.repeat([0.004, 0.008, 0.004, 0.002], 60),
            np.repeat([0.001, 0.002], 60),
        ],
        ids=["stepped after each batch", "nearly there", "rises and falls", "changed by hand once"],
    )
    def test_but_not_on_another_schedule(self, rates):
        assert climbing(rates) is None

    def test_nor_on_a_run_that_was_cut_off(self):
        with pytest.raises(NotApplicable):
            climbing(np.repeat(np.linspace(0.004, 0.0047, 8), 60), complete=False)

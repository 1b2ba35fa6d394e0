import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import Verdicts
from diagnostics.facts.data import DatasetFacts
from diagnostics.facts.pipeline import LossFacts, ModelFacts, OptimizerFacts
from diagnostics.facts.training import LossHistory, NoGradHistory, StepHistory, UpdateHistory
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.optimizer.loss_plateau import LossPlateau
from tests.support.courses import answers, history, judge, recorded
from tests.support.loss_graphs import constant, graph_of, leaf, step

RULE = LossPlateau()
LOSS = LossFacts(1.13, "cross_entropy", 1.08)
LEARNS = (1.13, 1.02, 0.9, 0.8, 0.7, 0.6, 0.51)
HOVERING = (1.13, 3.4, 1.8, *(1.12, 1.09) * 13, 1.1)


def trial(losses=HOVERING, better_rate=5e-5, better_losses=LEARNS, warms_up=False, ratio=0.045):
    return TrialFacts(1e-3, tuple(losses), (ratio,) * 29, better_rate, better_losses, warms_up)


class TestFires:
    def test_when_the_loss_hovers_at_the_chance_level(self):
        model = ModelFacts("DistilBertTextClassifier", "keras", 9, 9)
        finding = RULE.from_trial(trial(), LOSS, model, OptimizerFacts("Adam", (1e-3,), {}, 9, 0))
        assert (finding.rule, finding.stage, finding.severity) == ("loss-plateau", "optimizer", "warning")
        assert finding.evidence["lowest_of_last"] == 1.09
        assert finding.evidence["highest_of_last"] == 1.12
        assert finding.evidence["best_constant_loss"] == 1.08

    def test_when_the_rate_is_so_low_that_the_loss_stays_where_it_began(self):
        assert RULE.from_trial(trial([1.1] * 30, better_rate=0.1, ratio=1e-7), LOSS) is not None


class TestStaysSilent:
    @pytest.mark.parametrize(
        "losses",
        [
            LEARNS + (0.45,) * 23,
            [1.13 - 0.004 * step for step in range(30)],  # falls slowly, and goes on to fall
            [1.6] * 30,  # stuck as well, but far above chance
            [1.13] * 20 + [0.8, 1.4] * 5,  # swings
            [1.13] * 25 + [math.nan] * 5,
        ],
        ids=["learns", "on its way", "above chance", "swings", "nan"],
    )
    def test_when_the_loss_does_something_else(self, losses):
        assert RULE.from_trial(trial(losses), LOSS) is None

    def test_when_a_gentle_rate_has_not_got_going_yet(self):
        # Adam at 2e-5: the first 30 steps bring little, at 2e-3 they bring all; a real run has thousands.
        losses = [1.1 - 0.0003 * step for step in range(30)]
        assert RULE.from_trial(trial(losses, better_rate=2e-3, ratio=2.2e-4), LOSS) is None

    def test_when_no_other_rate_gets_past_it(self):
        assert RULE.from_trial(trial(better_rate=None, better_losses=()), LOSS) is None
        assert RULE.from_trial(trial(better_losses=(1.13, 0.9)), LOSS) is None


class TestNotApplicable:
    def test_without_a_chance_level(self):
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(), LossFacts(1.1, "other"))

    @pytest.mark.parametrize("warms_up", [True, None])
    def test_to_a_rate_that_may_warm_up(self, warms_up):
        with pytest.raises(NotApplicable):
            RULE.from_trial(trial(warms_up=warms_up), LOSS)


class TestWhileTraining:
    def test_fires_on_a_classifier_that_stays_at_chance_however_far_it_moves(self):
        finding = judge(
            RULE.from_answers, history([0.7] * 400, update=5e-3), answers([0.67] * 20, (20, 12), right=19)
        )
        assert (finding.rule, finding.severity, finding.step) == ("loss-plateau", "warning", 140)

    @pytest.mark.parametrize("update", [1e-3, 0.02], ids=["merely slow", "the rate is too high"])
    def test_is_silent_where_the_size_of_the_steps_says_more(self, update):
        assert judge(RULE.from_answers, history([0.7] * 400, update=update), answers([0.69] * 20)) is None

    def test_is_silent_above_the_chance_level(self):
        assert judge(RULE.from_answers, history([1.0] * 400, update=5e-3), answers([1.0] * 20)) is None

    def test_is_silent_on_a_classifier_that_learns(self):
        assert (
            judge(RULE.from_answers, history(steps=400, update=5e-3), answers(np.geomspace(0.7, 0.05, 20))) is None
        )

    def test_is_not_applicable_to_a_short_run(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_answers, history(steps=380), answers([0.69] * 19))

    def test_is_not_applicable_to_a_loss_whose_chance_level_is_not_known(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_answers, history(steps=400), answers([0.69] * 20, plain=False))


STEPS, ONES = np.arange(30), np.ones((30, 1))
UPDATES = UpdateHistory(("fc",), STEPS, np.full((30, 1), 1e-4), ONES)


SAME_INPUTS = {"passes": 48, "rounds": 24, "compared": 16, "same": 16}


def no_grad(rounds=300, compared=16, same=16):
    return NoGradHistory(2 * rounds, 0, rounds, compared=compared, same=same)


class TestOneAndTheSame:
    DATA = DatasetFacts(size=1200, rows_read=512, distinct_rows=512)

    def judge(self, last, dataset=DATA, found=frozenset(), fingerprints=None, **facts):
        """Judge 300 steps that fall from 1.2, the last half of which have the losses `last`."""
        steps = np.arange(300)
        losses = np.concatenate([np.linspace(1.2, 0.3, 150), np.broadcast_to(last, 150)])
        seen = steps if fingerprints is None else np.broadcast_to(fingerprints, 300)
        ones = np.ones(300, np.int8)
        of_steps = StepHistory(
            300, steps, np.full((300, 1), 0.01), ones, ones, ones, seen.astype(np.uint64), np.full(300, 32)
        )
        verdicts = Verdicts(found=frozenset(found), judged=frozenset())
        return RULE.from_losses(of_steps, LossHistory(steps, losses), verdicts, dataset, **facts)

    def test_a_triplet_loss_at_its_margin_is_named(self):
        finding = self.judge(0.2)
        assert finding.severity == "warning"

    def test_a_margin_that_every_row_keeps_is_not(self):
        assert self.judge(0.0) is None

    def test_losses_of_different_batches_are_not(self):
        assert self.judge(0.2 + 0.01 * np.random.default_rng(0).random(150)) is None

    def test_the_same_batch_again_is_not(self):
        assert self.judge(0.2, fingerprints=7) is None

    def test_a_loss_that_stays_in_a_loop_without_a_dataset(self):
        finding = self.judge(0.2, None, updates=UPDATES)
        assert (finding.severity, "same_input" in finding.evidence) == ("warning", False)

    @pytest.mark.parametrize("ratio", [None, 0.0], ids=["not known", "still"])
    def test_needs_weights_that_change_without_a_dataset(self, ratio):
        updates = None if ratio is None else UpdateHistory(("fc",), STEPS, np.full((30, 1), ratio), ONES)
        with pytest.raises(NotApplicable):
            self.judge(0.2, None, updates=updates)

    def test_a_model_that_is_its_own_reference(self):
        finding = self.judge(math.log(2), None, updates=UPDATES, no_grad=no_grad())
        assert (finding.severity, finding.evidence["same_input"]) == ("warning", 16)

    def from_first_loss_on(self, losses, alone=True, **counts):
        """Judge a run of 24 steps, each with passes without gradients on the same inputs."""
        seen = {f"no_grad_{name}": value for name, value in (SAME_INPUTS | counts).items()}
        verdicts = Verdicts(frozenset({"default-learning-rate"}), frozenset(), trained_alone=alone)
        run = history(losses, prints=np.arange(len(losses), dtype=np.uint64), **seen)
        return judge(RULE.from_first_loss_on, run, verdicts)

    def test_a_model_that_is_its_own_reference_in_a_short_run(self):
        finding = self.from_first_loss_on(np.full(24, np.float32(math.log(2))))
        assert (finding.severity, finding.evidence["steps"], finding.evidence["compared"]) == ("warning", 24, 16)

    def test_an_adapter_that_has_hardly_moved_from_its_reference(self):
        assert self.from_first_loss_on(math.log(2) - 1e-6 * np.arange(24)) is None

    @pytest.mark.parametrize("losses", [np.zeros(24), np.ones(24)], ids=["loss of 0", "loss of 1, by design"])
    def test_losses_that_are_constant_for_other_reasons(self, losses):
        assert self.from_first_loss_on(losses) is None

    @pytest.mark.parametrize("counts", [{"rounds": 2}, {"same": 2}])
    def test_a_short_run_without_a_reference(self, counts):
        assert self.from_first_loss_on(np.full(24, 0.5), **counts) is None

    @pytest.mark.parametrize(("steps", "alone"), [(19, True), (24, False)], ids=["very short", "two players"])
    def test_needs_a_few_steps_of_one_model(self, steps, alone):
        with pytest.raises(NotApplicable):
            self.from_first_loss_on(np.full(steps, 0.5), alone)

    @pytest.mark.parametrize(
        "other",
        [{"rounds": 30}, {"same": 2}, {"compared": 4, "same": 4}],
        ids=["an evaluation now and then", "other inputs", "few steps compared"],
    )
    def test_passes_without_gradients_that_are_no_reference(self, other):
        finding = self.judge(math.log(2), None, updates=UPDATES, no_grad=no_grad(**other))
        assert "same_input" not in finding.evidence

    def test_old_predictions_of_a_policy_whose_loss_varies(self):
        values = 1e-8 * np.random.default_rng(0).normal(size=150)
        assert self.judge(values, None, updates=UPDATES, no_grad=no_grad()) is None

    def test_a_loss_divided_by_itself_is_one_by_design(self):
        divided = graph_of(step("Div", (), step("Mean", (), leaf(3))))
        assert self.judge(1.0, graph=divided) is None
        assert self.judge(1.0, None, updates=UPDATES) is None
        assert self.judge(1.0, graph=graph_of(step("Mean", (), leaf(3)))) is not None

    def test_another_rule_says_why(self):
        assert self.judge(0.2, found={"dead-units"}) is None

    @pytest.mark.parametrize(
        "dataset",
        [DatasetFacts(size=32, rows_read=32), DatasetFacts(size=1200, rows_read=512, distinct_rows=4)],
        ids=["one batch", "few rows"],
    )
    def test_needs_batches_of_different_rows(self, dataset):
        with pytest.raises(NotApplicable):
            self.judge(0.2, dataset)


def cosines(count, *scaled, lengths=(0.9995, 1.0)):
    """Judge the cross entropy of products of vectors, after one more operation."""
    rows, columns = (step("Div", (count, 8), leaf(count, 8), lengths=lengths) for _ in range(2))
    scores = step("Mm", (count, count), rows, columns)
    for operation, *others in scaled:
        scores = step(operation, (count, count), scores, *others)
    loss = step("NllLoss", (), step("LogSoftmax", (count, count), scores))
    return LossPlateau().from_cosines(graph_of(step("Add", (), loss)))


class TestFromCosines:
    def test_tells_of_a_temperature_that_multiplies(self):
        finding = cosines(64, ("T",), ("Mul", constant(value=0.07)), ("Permute",))
        assert (finding.rule, finding.severity) == ("loss-plateau", "warning")

    def test_tells_of_a_scale_that_divides(self):
        assert cosines(64, ("Div", constant(value=-10.0))).evidence["factor"] == pytest.approx(0.1)

    @pytest.mark.parametrize(("classes", "divisor"), [(64, 0.07), (64, 0.5), (512, 1.0), (65536, 1.0)])
    def test_silent_on_temperatures_that_divide(self, classes, divisor):
        assert cosines(classes, ("Div", constant(value=divisor))) is None

    def test_silent_on_plain_cosines(self):
        assert cosines(64) is None

    @pytest.mark.parametrize(
        ("scaled", "lengths"),
        [
            ([("Mul", constant(value=0.07))], (0.9, 1.0)),
            ([("Mul", constant(value=0.07))], None),
            ([("Mul", leaf())], (1.0, 1.0)),
            ([("Mul", constant())], (1.0, 1.0)),
            ([("Mul", constant(value=0.0))], (1.0, 1.0)),
            ([("Add", constant(value=0.07))], (1.0, 1.0)),
        ],
        ids=["other lengths", "not measured", "learned", "not read", "zero", "added"],
    )
    def test_other_scores_say_nothing(self, scaled, lengths):
        with pytest.raises(NotApplicable):
            cosines(64, *scaled, lengths=lengths)


class TestFromCandidates:
    @staticmethod
    def judge(values, count=64, operation="Mm", steps=450, found=()):
        rows, columns = (step("Div", (count, 8), leaf(count, 8)) for _ in range(2))
        scores = step("MaskedFill", (count, count), step(operation, (count, count), rows, columns))
        graph = graph_of(step("NllLoss", (), step("LogSoftmax", (count, count), scores)))
        history = recorded(
            total_steps=steps, steps=np.arange(steps), layers=(), learning_rates=np.full((steps, 1), 0.1)
        ).steps
        losses = LossHistory(np.arange(steps), np.broadcast_to(values, steps).astype(float))
        return LossPlateau().from_candidates(graph, history, losses, Verdicts(frozenset(found), frozenset()))

    @pytest.mark.parametrize("level", [0.99, 1.0, 1.01])
    def test_fires_at_the_logarithm_of_the_candidates(self, level):
        finding = self.judge(level * math.log(64))
        assert (finding.severity, finding.evidence["candidates"]) == ("warning", 64)

    @pytest.mark.parametrize("level", [0.9, 1.3])
    def test_silent_elsewhere(self, level):
        assert self.judge(level * math.log(64)) is None

    def test_silent_on_a_loss_that_still_falls(self):
        assert self.judge(np.linspace(1.1, 0.98, 450) * math.log(64)) is None

    def test_silent_if_another_rule_says_why(self):
        assert self.judge(math.log(64), found={"dead-units"}) is None

    @pytest.mark.parametrize("other", [{"operation": "Addmm"}, {"count": 4}, {"steps": 150}])
    def test_needs_many_pairs_and_steps(self, other):
        with pytest.raises(NotApplicable):
            self.judge(math.log(64), **other)

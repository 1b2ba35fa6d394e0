import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.course import SimpleFit, TargetHistory, Verdicts
from diagnostics.facts.inputs import DrawnInputs, InputSample
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.facts.trials import TrialFacts
from diagnostics.rules.data.unscaled_inputs import UnscaledInputs
from tests.support.courses import history, judge

RULE = UnscaledInputs()
TEN = OutputFacts((32, 10), 10, lowest=-40.0, highest=40.0)
ONE = OutputFacts((32, 1), None, lowest=-0.4, highest=0.5)
OFF = LossFacts(35.5, "cross_entropy", 2.2)
AT_CHANCE = LossFacts(2.31, "cross_entropy", 2.2)


def pixels(scale: float = 1.0) -> np.ndarray:
    values = np.random.default_rng(0).integers(0, 256, (32, 1, 8, 8)).astype(np.float32)
    values[0, 0, 0, :2] = 0, 255
    return values * scale


def incomes() -> np.ndarray:
    table = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    table[:, 2] = np.linspace(1_200, 98_000, 32)
    return table


def trial(losses: list[float], ratio: float = 0.01, **settings) -> TrialFacts:
    return TrialFacts(0.01, tuple(losses), (ratio,) * len(losses), **settings)


STUCK = [3.1, 9.0, 5.0, 7.5, 4.2, 6.1] * 5


class TestInputsAndFirstLoss:
    def test_tells_of_pixels_from_0_to_255(self):
        finding = RULE.from_loss(BatchFacts(32, {"0": pixels()}), OFF, TEN)
        assert (finding.rule, finding.severity, finding.stage) == ("unscaled-inputs", "warning", "data")
        assert finding.evidence == {
            "input": "0",
            "column": None,
            "root_mean_square": pytest.approx(148, abs=4),
            "range": [0.0, 255.0],
            "loss": 35.5,
            "chance": math.log(10),
        }

    @pytest.mark.parametrize("dtype", [np.uint8, np.int64])
    def test_tells_of_pixels_that_are_integers(self, dtype):
        rows = BatchFacts(32, {"0": pixels().astype(dtype).reshape(32, 64)})
        assert RULE.from_loss(rows, OFF, TEN).severity == "warning"

    def test_takes_no_bytes_of_a_text_for_pixels(self):
        rows = BatchFacts(32, {"0": pixels().astype(np.uint8).reshape(32, 64)})
        embeds = ModelFacts("M", "keras", 100, 100, embedding_rows=256)
        at_each_position = OutputFacts((32, 64, 10), 10, lowest=-40.0, highest=40.0)
        for outputs, model in ((TEN, embeds), (at_each_position, None)):
            with pytest.raises(NotApplicable):
                RULE.from_loss(rows, OFF, outputs, model)

    def test_tells_of_pixels_before_a_single_sigmoid(self):
        single = OutputFacts((32, 1), 2, lowest=0.0, highest=1.0, indexed_labels=False)
        loss = LossFacts(20.1, "binary_cross_entropy", 0.69)
        assert RULE.from_loss(BatchFacts(32, {"0": pixels()}), loss, single).severity == "warning"

    def test_in_keras_it_offers_a_layer(self):
        batch = BatchFacts(32, {"image": pixels().astype(np.uint8)})
        assert RULE.from_loss(batch, OFF, TEN).severity == "warning"
        assert RULE.from_loss(BatchFacts(32, {"table": incomes()}), OFF, TEN).severity == "warning"

    def test_names_the_column_of_a_table(self):
        finding = RULE.from_loss(BatchFacts(32, {"features": incomes()}), OFF, TEN)
        assert finding.evidence["column"] == 2

    def test_is_silent_on_a_model_that_scales_them_itself(self):
        assert RULE.from_loss(BatchFacts(32, {"0": pixels()}), AT_CHANCE, TEN) is None

    def test_leaves_models_with_a_layer_for_it_alone(self):
        model = ModelFacts("M", "keras", 100, 100, scales_inputs=True)
        batch, outputs = BatchFacts(16, {"0": pixels()}), OutputFacts((16, 10), 10)
        with pytest.raises(NotApplicable):
            RULE.from_loss(batch, LossFacts(358.0, "cross_entropy", 2.3), outputs, model)

    def test_is_silent_on_scaled_inputs_whatever_the_loss(self):
        assert RULE.from_loss(BatchFacts(32, {"0": pixels(1 / 255)}), OFF, TEN) is None

    @pytest.mark.parametrize(("scaled", "named"), [(35.1, False), (19.5, False), (2.4, True), (None, True)])
    def test_is_silent_where_inputs_at_unit_scale_keep_the_loss(self, scaled, named):
        loss = LossFacts(35.5, "cross_entropy", 2.2, scaled=scaled)
        assert (RULE.from_loss(BatchFacts(32, {"0": pixels()}), loss, TEN) is not None) is named

    def test_leaves_nan_and_masks_to_others(self):
        table = incomes()
        table[3, 2] = np.nan
        additive = np.where(np.eye(32), 0.0, -1e9)
        assert RULE.from_loss(BatchFacts(32, {"0": table, "attention_bias": additive}), OFF, TEN) is None

    def test_needs_numbers_that_have_a_scale(self):
        tokens = BatchFacts(2, {"input_ids": np.full((2, 8), 900)})
        with pytest.raises(NotApplicable):
            RULE.from_loss(tokens, OFF, TEN)

    def test_needs_a_first_loss_that_chance_predicts(self):
        with pytest.raises(NotApplicable):
            RULE.from_loss(BatchFacts(32, {"0": pixels()}), LossFacts(9.0, "mean_squared_error"), ONE)


class TestInputsAndTrial:
    def judge(self, run: TrialFacts, values: np.ndarray | None = None):
        batch = BatchFacts(32, {"0": incomes() if values is None else values}, np.arange(32) % 10, "1")
        return RULE.from_trial(batch, AT_CHANCE, TEN, run)

    def test_tells_of_a_run_that_settled_above_the_floor(self):
        finding = self.judge(trial(STUCK, better_rate=1e-4))
        assert finding.evidence["steps"] == 30
        assert finding.evidence["floor"] == 2.2
        assert finding.evidence["better_rate"] == 1e-4

    def test_tells_of_a_run_that_blew_up(self):
        finding = self.judge(trial([2.6, 40.0, 1e9, math.inf, math.nan]))
        assert finding.evidence["last_loss"] == "nan"

    @pytest.mark.parametrize(
        "run",
        [
            trial([2.6 * 0.93**step for step in range(18)]),
            trial([2.31, *[2.25] * 29]),
            trial([8.0 - 0.2 * step for step in range(30)]),
            trial([2.6 - 0.001 * step for step in range(30)], ratio=1e-5),
            trial(STUCK, warms_up=True),
            trial([2.5, 1.1]),
        ],
        ids=[
            "it passed",
            "it reached the floor: the data may not be learnable",
            "it is still falling",
            "its steps are too small",
            "it warms up",
            "it stopped early",
        ],
    )
    def test_is_silent_where(self, run):
        assert self.judge(run) is None

    def test_is_silent_on_scaled_inputs(self):
        assert self.judge(trial(STUCK), incomes() / 98_000) is None

    def test_leaves_a_first_loss_that_is_nan_to_others(self):
        assert self.judge(trial([math.nan] * 3)) is None

    def test_needs_a_floor(self):
        batch = BatchFacts(32, {"0": incomes()}, np.zeros(32), "1")
        with pytest.raises(NotApplicable):
            RULE.from_trial(batch, LossFacts(3.0, "other"), ONE, trial(STUCK))


class TestTargets:
    PRICES = np.linspace(98_000, 664_000, 32, dtype=np.float32)[:, None]

    def judge(self, run: TrialFacts, targets: np.ndarray, outputs: OutputFacts = ONE):
        inputs = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
        floor = float(targets.var())
        loss = LossFacts(run.losses[0], "mean_squared_error", floor)
        return RULE.from_trial(BatchFacts(32, {"0": inputs}, targets, "1"), loss, outputs, run)

    def test_tells_of_a_scale_out_of_reach(self):
        start = float((self.PRICES**2).mean())
        finding = self.judge(trial([start - 1e5 * step for step in range(30)], ratio=1e-2), self.PRICES)
        assert finding.evidence["target_range"] == [98_000.0, 664_000.0]
        assert finding.evidence["output_range"] == [-0.4, 0.5]

    def test_tells_of_gradients_that_blew_up(self):
        start = float((self.PRICES**2).mean())
        finding = self.judge(trial([start, 1e30, math.inf, math.nan]), self.PRICES)
        assert finding.evidence["share_of_way"] is None

    def test_is_silent_where_the_learning_rate_suits_the_scale(self):
        start = float((self.PRICES**2).mean())
        assert self.judge(trial([start * 0.97**step for step in range(30)]), self.PRICES) is None

    def test_is_silent_on_targets_of_some_tens(self):
        mpg = np.linspace(9, 40, 32, dtype=np.float32)[:, None]
        assert self.judge(trial([680.0 - 0.01 * step for step in range(30)]), mpg) is None

    def test_is_silent_where_the_outputs_are_on_that_scale(self):
        start = float((self.PRICES**2).mean())
        fitted = OutputFacts((32, 1), None, lowest=90_000.0, highest=700_000.0)
        assert self.judge(trial([start] * 30), self.PRICES, fitted) is None


def ended_with(targets, losses, complete=True):
    inputs = np.random.default_rng(0).normal(size=(32, 4)).astype(np.float32)
    first = LossFacts(float((targets**2).mean()), "mean_squared_error", float(targets.var()))
    return judge(
        RULE.targets_from_course,
        history(np.asarray(losses, float)),
        BatchFacts(32, {"0": inputs}, targets, "1"),
        first,
        ONE,
        Verdicts(frozenset(), frozenset(), complete=complete),
    )


class TestTargetsAndTheEndOfTheRun:
    PRICES = TestTargets.PRICES
    START, CONSTANT = float((PRICES**2).mean()), float(PRICES.var())

    def test_tells_of_a_run_that_never_reached_their_scale(self):
        finding = ended_with(self.PRICES, np.linspace(self.START, 0.95 * self.START, 200))
        assert (finding.severity, finding.step) == ("warning", 199)
        assert 0 < finding.evidence["share_of_way"] < 0.1

    def test_tells_of_a_run_that_they_broke_after_a_few_steps(self):
        finding = ended_with(self.PRICES, [self.START, 1e30, *[math.nan] * 40])
        assert finding.evidence["share_of_way"] is None

    def test_silent_where_the_run_reached_their_mean(self):
        assert ended_with(self.PRICES, np.linspace(self.START, self.CONSTANT, 200) ** 0.999) is None

    def test_silent_on_targets_of_some_tens(self):
        mpg = np.linspace(9, 40, 32, dtype=np.float32)[:, None]
        assert ended_with(mpg, np.full(200, 680.0)) is None

    def test_needs_a_complete_run_of_some_length(self):
        for losses, complete in ((np.full(200, self.START), False), (np.full(64, self.START), True)):
            with pytest.raises(NotApplicable):
                ended_with(self.PRICES, losses, complete)


FITS = SimpleFit(120, 120, 0.8, 0.1, True, True)


def ended(scale, losses, fit=FITS, constant=1.79, alone=True):
    images = np.random.default_rng(0).random((32, 1, 64)).astype(np.float32) * scale
    drawn = DrawnInputs({"0": InputSample((images,), 64, positional=True)})
    steps = np.arange(0, 200, 20)
    constants = np.full(10, constant)
    targets = TargetHistory("cross_entropy", steps, constants, constants, 640, 6, fit)
    return judge(
        RULE.from_course,
        history(np.full(200, losses)),
        drawn,
        targets,
        Verdicts(frozenset(), frozenset(), trained_alone=alone),
    )


class TestInputsAndTheEndOfTheRun:
    def test_tells_of_bytes_divided_twice(self):
        finding = ended(1 / 255, 1.79)
        assert finding.severity == "warning"

    def test_tells_of_large_ones_far_above_the_constant_answer(self):
        assert ended(9e4, 8000.0).severity == "warning"
        assert ended(9e4, 1.8) is None

    def test_silent_on_a_usual_scale_on_a_run_that_learned_and_on_noise(self):
        assert ended(1.0, 1.79) is None
        assert ended(1 / 255, 0.4) is None
        assert ended(1 / 255, 1.79, fit=SimpleFit(120, 120, 0.8, 0.79, True, True)) is None

    def test_not_applicable_to_players_in_turn(self):
        with pytest.raises(NotApplicable):
            ended(1 / 255, 1.79, alone=False)

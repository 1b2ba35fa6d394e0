import math

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.pipeline import BatchFacts, LossFacts, ModelFacts, OutputFacts
from diagnostics.facts.training import LossHistory
from diagnostics.rules.model.loss.initial_loss_off import InitialLossOff

TEN = OutputFacts((32, 10), 10)


class TestFires:
    def test_on_pixels_that_were_never_scaled(self):
        finding = InitialLossOff().from_loss(LossFacts(35.467, "cross_entropy", 2.1), TEN)
        assert (finding.rule, finding.severity, finding.stage) == ("initial-loss-off", "warning", "model")
        assert finding.evidence == {"loss": 35.467, "chance": math.log(10), "num_classes": 10}

    @pytest.mark.parametrize(("classes", "limit"), [(2, math.log(2) + 2), (50_257, 1.5 * math.log(50_257))])
    def test_above_two_nats_and_half_of_chance(self, classes, limit):
        outputs = OutputFacts((8, classes), classes)
        assert InitialLossOff().from_loss(LossFacts(limit + 0.01, "cross_entropy"), outputs) is not None
        assert InitialLossOff().from_loss(LossFacts(limit - 0.01, "cross_entropy"), outputs) is None

    def test_for_one_sigmoid_with_labels_0_and_1(self):
        single = OutputFacts((32, 1), 2, last_activation="sigmoid", indexed_labels=False)
        assert (
            InitialLossOff().from_loss(LossFacts(41.5, "binary_cross_entropy", 0.69), single).severity == "warning"
        )


class TestStaysSilent:
    @pytest.mark.parametrize("value", [0.02, 2.1, 2.30, 3.4])
    def test_near_chance_and_below_it(self, value):
        assert InitialLossOff().from_loss(LossFacts(value, "cross_entropy", 2.1), TEN) is None


class TestNotApplicable:
    def test_to_cosines_that_a_factor_makes_larger(self):
        cosines = OutputFacts((64, 10), 10, multiplied=True)
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(12.21, "cross_entropy", 2.3), cosines)

    @pytest.mark.parametrize("kind", ["mean_squared_error", "other"])
    def test_to_other_losses(self, kind):
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(50.0, kind), TEN)

    def test_where_the_classes_are_not_known(self):
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(50.0, "cross_entropy"), OutputFacts((32, 10), None))

    def test_to_several_labels_at_once(self):
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(50.0, "binary_cross_entropy"), OutputFacts((32, 10), None))

    def test_where_classes_weigh_differently(self):
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(50.0, "cross_entropy", class_weights=True), TEN)

    @pytest.mark.parametrize("value", [math.nan, math.inf])
    def test_to_a_loss_that_is_not_finite(self, value):
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(value, "cross_entropy"), TEN)

    @pytest.mark.parametrize("floor", [32 * 2.1, math.log(32) + 1, 0.0])
    def test_to_a_loss_that_adds_up_its_32_examples(self, floor):
        with pytest.raises(NotApplicable):
            InitialLossOff().from_loss(LossFacts(32 * 2.3, "cross_entropy", floor), TEN)

    def test_but_to_one_label_under_an_averaged_loss_it_is(self):
        assert InitialLossOff().from_loss(LossFacts(9.0, "cross_entropy", 0.0), TEN) is not None

    def test_but_to_labels_all_different_under_an_averaged_loss_it_is(self):
        hundred = OutputFacts((8, 100), 100)
        assert InitialLossOff().from_loss(LossFacts(50.0, "cross_entropy", math.log(8)), hundred) is not None


class TestAdvice:
    def test_leaves_out_scaling_where_inputs_are_scaled(self):
        batch = BatchFacts(4, {"0": np.random.default_rng(0).normal(size=(4, 40)).astype(np.float32)})
        model = ModelFacts("Net", "torch", 100, 100)
        outputs = OutputFacts((32, 10), 10, lowest=-12.8, highest=15.8)
        assert (
            InitialLossOff().from_loss(LossFacts(6.69, "cross_entropy", 2.1), outputs, model, batch).severity
            == "warning"
        )

    def test_names_scaling_for_raw_pixels(self):
        pixels = np.full((4, 1, 8, 8), 200, np.uint8)
        model = ModelFacts("Net", "torch", 100, 100)
        assert (
            InitialLossOff()
            .from_loss(LossFacts(35.0, "cross_entropy", 2.1), TEN, model, BatchFacts(4, {"0": pixels}))
            .severity
            == "warning"
        )

    @pytest.mark.parametrize(("scaled", "blamed"), [(5.5, False), (2.4, True)])
    def test_blames_the_scale_only_if_the_loss_depends_on_it(self, scaled, blamed):
        pixels = np.full((4, 1, 8, 8), 200, np.uint8)
        model = ModelFacts("Net", "keras", 100, 100)
        loss = LossFacts(5.56, "cross_entropy", 2.1, scaled=scaled)
        finding = InitialLossOff().from_loss(loss, TEN, model, BatchFacts(4, {"0": pixels}))
        assert ("the inputs are not scaled" in finding.message) is blamed

    @pytest.mark.parametrize(("evaluated", "found"), [(1.9, False), (30.0, True)])
    def test_needs_a_high_loss_without_dropout(self, evaluated, found):
        loss = LossFacts(4.83, "cross_entropy", 2.1, evaluated=evaluated)
        assert (InitialLossOff().from_loss(loss, TEN) is not None) is found


class TestAfterRun:
    FINDING = InitialLossOff().from_loss(LossFacts(6.69, "cross_entropy", 2.1), TEN)

    @staticmethod
    def losses(first, last, steps):
        return LossHistory(np.arange(steps), np.geomspace(first, last, steps))

    def test_is_a_note_where_the_run_learned(self):
        after = InitialLossOff().after_run(self.FINDING, self.losses(6.69, 0.11, 160))
        assert after.severity == "note"

    def test_is_a_note_after_few_steps_that_helped(self):
        after = InitialLossOff().after_run(self.FINDING, self.losses(6.69, 2.5, 16))
        assert after.severity == "note"

    @pytest.mark.parametrize(("last", "steps"), [(2.3, 160), (9.0, 16), (math.nan, 160)])
    def test_stays_a_warning_otherwise(self, last, steps):
        assert InitialLossOff().after_run(self.FINDING, self.losses(6.69, last, steps)) is self.FINDING

    @pytest.mark.parametrize(
        ("trainable", "scale", "last", "severity"),
        [
            (5, 0.5, 1.9, "note"),
            (5, 0.5, 2.29, "warning"),
            (80, 0.5, 1.9, "warning"),
            (5, 200.0, 1.9, "warning"),
        ],
        ids=["only the head learns", "no better than chance", "most weights learn", "inputs not scaled"],
    )
    def test_a_new_head_on_frozen_weights_has_only_to_pass_chance(self, trainable, scale, last, severity):
        model, batch = ModelFacts("Net", "keras", 100, trainable), BatchFacts(4, {"0": np.full((4, 8), scale)})
        finding = InitialLossOff().from_loss(LossFacts(6.69, "cross_entropy", 2.1), TEN, model, batch)
        losses = LossHistory(np.arange(150), np.concatenate([np.full(50, 6.69), np.full(100, last)]))
        assert InitialLossOff().after_run(finding, losses).severity == severity


def test_a_language_model_from_a_checkpoint_is_not_judged_by_text_unlike_its_own():
    model = ModelFacts(
        "LlamaForCausalLM", "transformers", 9, 9, embedding_rows=421, is_own=False, from_checkpoint=True
    )
    outputs = OutputFacts((4, 8, 421), 421)
    with pytest.raises(NotApplicable):
        InitialLossOff().from_loss(LossFacts(10.0, "cross_entropy", 3.0), outputs, model)
    classifier = ModelFacts("Net", "transformers", 9, 9, embedding_rows=421, from_checkpoint=True)
    assert InitialLossOff().from_loss(LossFacts(35.0, "cross_entropy", 2.1), TEN, classifier) is not None

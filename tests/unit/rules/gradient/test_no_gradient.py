from dataclasses import replace

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.crash import CrashFacts, FrameFacts
from diagnostics.facts.crash.data import NoPathToParameters
from diagnostics.facts.data import SampleWeights
from diagnostics.facts.loss_call import LossTerm, LossTerms
from diagnostics.facts.pipeline import GradientFacts
from diagnostics.facts.where import Where
from diagnostics.rules.gradient.no_gradient import NoGradient

CRASH = CrashFacts(
    "RuntimeError",
    "element 0 of tensors does not require grad and does not have a grad_fn",
    (
        FrameFacts("train.py", 12, "<module>", "loss.backward()", yours=True),
        FrameFacts("torch/autograd/graph.py", 865, "_engine_run_backward"),
    ),
    live=True,
)


class TestFromGradients:
    def test_a_loss_that_reaches_no_parameter_is_an_error(self):
        finding = NoGradient().from_gradients(GradientFacts(False, {}, {"weight": 3000}, 3000))
        assert (finding.rule, finding.severity, finding.stage) == ("no-gradient", "error", "gradient")
        assert finding.evidence == {"connected": False, "num_trainable": 3000}

    def test_a_model_frozen_as_a_whole_is_told_apart(self):
        assert NoGradient().from_gradients(GradientFacts(False, {}, {}, 0)).severity == "error"

    def test_keras_is_told_in_its_own_words(self):
        assert NoGradient().from_gradients(GradientFacts(False, {}, {}, 0)).severity == "error"
        assert NoGradient().from_gradients(GradientFacts(False, {}, {"kernel": 100}, 100)).severity == "error"

    def test_a_single_parameter_within_reach_is_enough(self):
        gradients = GradientFacts(True, {"head.bias": 0.0}, {"head.weight": 2998}, 3000)
        assert NoGradient().from_gradients(gradients) is None


class TestFromWeights:
    def test_batches_that_all_weigh_nothing_are_an_error(self):
        finding = NoGradient().from_weights(SampleWeights(batches=20, blank=20, rows=640, zero_rows=640))
        assert (finding.rule, finding.severity) == ("no-gradient", "error")

    def test_a_batch_with_one_weight_among_twenty_does_not_save_it(self):
        assert (
            NoGradient().from_weights(SampleWeights(batches=20, blank=19, rows=640, zero_rows=639)).severity
            == "error"
        )

    def test_rows_without_a_label_in_each_batch_are_clean(self):
        assert NoGradient().from_weights(SampleWeights(batches=20, blank=4, rows=640, zero_rows=600)) is None

    def test_a_few_batches_prove_nothing(self):
        with pytest.raises(NotApplicable):
            NoGradient().from_weights(SampleWeights(batches=3, blank=3, rows=96, zero_rows=96))


class TestFromCrash:
    def test_it_says_what_was_missing_and_where(self):
        finding = NoGradient().from_crash(CRASH, NoPathToParameters())
        assert finding.where == Where("train.py", 12, "<module>")

    def test_it_speaks_keras_to_keras(self):
        frames = (CRASH.frames[0], FrameFacts("keras/src/optimizers/base_optimizer.py", 860, "apply"))
        crash = CrashFacts("ValueError", "No gradients provided for any variable.", frames, live=True)
        assert NoGradient().from_crash(crash, NoPathToParameters()).severity == "error"


class TestAdapters:
    """A model with PEFT's adapters: its base is frozen on purpose, and must stay so."""

    def test_all_frozen_is_told_how_the_adapters_learn(self):
        assert "peft" in NoGradient().from_gradients(GradientFacts(False, {}, {}, 0)).fixes

    def test_a_cut_path_is_told_of_gradient_checkpointing(self):
        assert "peft" in NoGradient().from_gradients(GradientFacts(False, {}, {"lora_A": 8}, 8)).fixes

    def test_a_crash_with_such_a_model_in_its_frames(self):
        assert NoGradient().from_crash(CRASH, NoPathToParameters(adapters=True)).severity == "error"


def loss_terms(gradients=(True, False), factors=(1.0, 0.5), steps=8, constant=True, values=None):
    """The losses of a loop: which have a gradient, and what each adds to the sum."""
    values = np.random.default_rng(0).uniform(0.5, 1, (steps, len(gradients))) if values is None else values
    terms = tuple(LossTerm("mse_loss", Where("train.py", 7, "step"), one, one, constant) for one in gradients)
    return LossTerms(terms, values @ np.array(factors), values)


class TestTerms:
    def test_a_term_without_a_gradient_is_named(self):
        finding = NoGradient().from_terms(loss_terms())
        assert (finding.severity, finding.where.line) == ("warning", 7)
        assert finding.evidence["share"] > 0.3

    def test_a_term_that_is_always_0_is_named(self):
        values = np.stack([np.linspace(2, 1, 8), np.full(8, 1e-9)], axis=1)
        assert NoGradient().from_terms(loss_terms(values=values)).evidence["share"] == 0

    @pytest.mark.parametrize(
        "terms",
        [
            loss_terms(factors=(1.0, 0.0)),  # a loss that is only logged
            loss_terms(factors=(1.0, -0.5)),  # subtracted, as a baseline
            loss_terms(constant=False),
            loss_terms(gradients=(True, True)),
            loss_terms(gradients=(False, False)),
        ],
    )
    def test_silent_on_a_healthy_sum(self, terms):
        assert NoGradient().from_terms(terms) is None

    def test_silent_where_the_loss_is_not_this_sum(self):
        terms = loss_terms()
        assert NoGradient().from_terms(replace(terms, totals=terms.totals**1.01)) is None

    def test_needs_some_steps(self):
        with pytest.raises(NotApplicable):
            NoGradient().from_terms(loss_terms(steps=7))

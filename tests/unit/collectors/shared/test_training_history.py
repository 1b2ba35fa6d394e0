"""The history of a run in parts: what is not known is absent, and a rule that needs it says so."""

import numpy as np
import pytest

from diagnostics.engine.evaluate import Evaluator, needs
from diagnostics.facts.training import (
    EvaluationHistory,
    GradientHistory,
    LossHistory,
    MemoryHistory,
    NoGradHistory,
    StepHistory,
    UpdateHistory,
)
from diagnostics.rules.registry import all_rules
from tests.support.courses import history, recorded


def bare(count=4):
    return recorded(
        total_steps=count, steps=np.arange(count), layers=("0",), learning_rates=np.full((count, 1), 0.1)
    )


class TestParts:
    def test_of_a_full_run(self):
        run = history(
            [1.0] * 40,
            evaluation_steps=[39],
            evaluation_losses=[0.5],
            memory_bytes=np.full(2, 2.0**20),
            memory_of="accelerator",
        )
        kinds = {StepHistory, LossHistory, GradientHistory, UpdateHistory, MemoryHistory, EvaluationHistory}
        assert {type(part) for part in run.parts()} == kinds | {NoGradHistory}
        assert (run.memory.holder, run.evaluations.steps.tolist()) == ("accelerator", [39])

    def test_of_a_run_of_which_only_the_steps_were_seen(self):
        run = bare()
        assert [type(part) for part in run.parts()] == [StepHistory, NoGradHistory]
        assert run.steps.training_mode.tolist() == run.steps.gradients_zeroed.tolist() == [-1] * 4
        assert run.steps.batch_sizes.tolist() == run.steps.batch_fingerprints.tolist() == [0] * 4

    def test_hold_only_the_steps_that_are_known(self):
        run = recorded(
            total_steps=4, steps=np.arange(4), layers=("0",), learning_rates=np.full((4, 1), 0.1),
            losses=np.array([1.0, np.nan, np.nan, 0.5]), loss_known=np.array([True, True, False, True]),
            gradient_norms=np.array([3.0, 0.0, 5.0, 0.0]), layer_gradient_norms=np.array([[3.0], [0], [5.0], [0]]),
            gradient_known=np.array([True, False, True, False]),
        )  # fmt: skip
        assert run.losses.steps.tolist() == [0, 1, 3]
        np.testing.assert_array_equal(run.losses.values, [1.0, np.nan, 0.5])
        assert (run.gradients.steps.tolist(), run.gradients.norms.tolist()) == ([0, 2], [3.0, 5.0])


class TestReasons:
    @pytest.mark.parametrize(
        ("rule", "reason"),
        [
            ("non-finite-loss", "needs the loss at each step"),
            ("non-finite-gradients", "needs the gradients of the steps"),
            ("overfitting", "needs the losses of evaluations and the loss at each step"),
            ("growing-memory", "needs readings of the memory"),
            ("learning-rate-too-high", "needs steps with the weights compared before and after"),
        ],
    )
    def test_name_the_parts_that_are_missing(self, rule, reason):
        evaluator = Evaluator(all_rules())
        run = bare()
        evaluator.add(*run.parts())
        evaluator.close_phase()
        kinds = (StepHistory, LossHistory, GradientHistory, UpdateHistory, MemoryHistory, EvaluationHistory)
        assert evaluator.not_applicable(*kinds)[rule] == reason

    def test_fall_back_on_the_name_of_the_facts(self):
        class TokenizerFacts:
            pass

        assert needs(LossHistory, TokenizerFacts) == "needs the loss at each step and tokenizer facts"

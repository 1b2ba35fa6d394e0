import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.gradient.exploding_gradients import ExplodingGradients
from tests.support.courses import judge, recorded

RULE = ExplodingGradients()


def history(norms, losses=None, zeroed=1):
    count = len(norms)
    norms = np.array(norms, np.float32)
    return recorded(
        total_steps=count,
        steps=np.arange(count),
        losses=None if losses is None else np.array(losses),
        loss_known=None if losses is None else np.ones(count, bool),
        layers=("memory", "head"),
        gradient_norms=norms,
        layer_gradient_norms=np.stack([norms * 0.9, norms * 0.1], axis=1),
        gradient_known=np.ones(count, bool),
        learning_rates=np.full((count, 1), 0.1),
        training_mode=np.ones(count, np.int8),
        passes=np.ones(count, np.int64),
        gradients_zeroed=np.full(count, zeroed, np.int8),
    )


class TestFires:
    def test_on_a_norm_that_grows_and_grows(self):
        finding = judge(RULE.from_history, history(np.geomspace(1, 1e8, 41), np.geomspace(1, 1e9, 41)))
        assert (finding.rule, finding.severity, finding.step) == ("exploding-gradients", "warning", 24)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_one_that_jumps_just_before_it_is_nan(self):
        assert judge(RULE.from_history, history([1.0, 2.0, 3.0, 2.0, 7e5, np.nan, np.nan])).severity == "warning"

    def test_on_a_spike_that_throws_the_loss_back(self):
        norms, losses = np.ones(100), np.linspace(3.0, 1.0, 100)
        norms[60], losses[61:] = 5e3, 2.9
        finding = judge(RULE.from_history, history(norms, losses))
        assert finding.step == 60


class TestSilent:
    def test_on_a_large_gradient_that_stays_so(self):
        assert judge(RULE.from_history, history(np.full(60, 1e12))) is None

    def test_on_the_spikes_of_a_warm_up(self):
        norms = np.ones(100)
        norms[[3, 12, 20]] = 60.0
        assert judge(RULE.from_history, history(norms, np.linspace(3, 1, 100))) is None

    def test_on_a_spike_from_which_the_loss_comes_back(self):
        norms, losses = np.ones(100), np.linspace(3.0, 1.0, 100)
        norms[60], losses[61:64] = 5e3, 9.0
        assert judge(RULE.from_history, history(norms, losses)) is None

    def test_on_the_first_batch_of_another_task_whose_loss_is_high_before_any_step_on_it(self):
        norms, losses = np.full(100, 5e-3), np.geomspace(3.0, 3e-4, 100)
        norms[60:70], losses[60:] = 6.0, np.geomspace(8.0, 0.5, 40)
        assert judge(RULE.from_history, history(norms, losses)) is None

    def test_on_a_spike_of_a_run_that_has_converged(self):
        norms, losses = np.full(100, 1e-7), np.geomspace(1, 1e-9, 100)
        norms[60], losses[61:70] = 1e-2, 1e-4
        assert judge(RULE.from_history, history(norms, losses)) is None

    def test_on_a_gradient_that_grows_while_the_loss_falls(self):
        assert judge(RULE.from_history, history(np.geomspace(1e-6, 1, 60), np.linspace(3, 1, 60))) is None

    def test_on_gradients_that_are_never_zeroed(self):
        facts = history(np.geomspace(1, 1e8, 41), zeroed=0)
        assert judge(RULE.from_history, facts) is None

    def test_on_a_nan_out_of_the_blue(self):
        assert judge(RULE.from_history, history([1.0, 2.0, 3.0, 2.0, 5.0, np.nan])) is None


def test_not_applicable_to_a_few_steps():
    with pytest.raises(NotApplicable):
        judge(RULE.from_history, history(np.ones(19)))

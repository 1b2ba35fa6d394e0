import json

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.evaluation.overfitting import Overfitting
from tests.support.courses import history, judge

RULE = Overfitting()
FALLS = np.linspace(1.0, 0.1, 801)[:800]


def evaluated(*losses, training=FALLS, **known):
    steps = np.linspace(99, len(training) - 1, len(losses)).astype(int)
    return history(training, evaluation_steps=steps, evaluation_losses=np.array(losses), **known)


class TestFires:
    def test_on_an_evaluation_loss_that_rises_while_the_training_loss_falls(self):
        finding = judge(RULE.from_history, evaluated(1.0, 0.8, 0.7, 0.75, 0.85, 0.95, 1.0, 1.2))
        assert (finding.rule, finding.severity, finding.step) == ("overfitting", "warning", 299)
        assert json.loads(json.dumps(finding.evidence)) == finding.evidence

    def test_on_one_that_rises_from_the_start(self):
        assert judge(RULE.from_history, evaluated(0.5, 0.56, 0.64, 0.7, 0.8, 0.95)) is not None


class TestSilent:
    @pytest.mark.parametrize(
        "losses",
        [
            (1.0, 0.8, 0.6, 0.5, 0.45, 0.42, 0.41, 0.4),
            (1.0, 0.6, 0.5, 0.51, 0.52, 0.51, 0.53, 0.52),  # hovers
            (1.0, 0.6, 0.5, 0.9, 0.52, 0.51, 0.53, 0.52),  # one bad evaluation
            (0.5, 0.49, 0.51, 0.5, 0.49, 0.52, 0.5, 0.51),  # fine-tuning that starts near its best
            (1.0, 0.8, 0.7, 0.65, 0.6, 0.58, 0.9, 1.2),  # rises, but not for long
            (-5.0, -5.1, -5.0, -5.05, -5.0, -4.9),
        ],
    )
    def test_on_an_evaluation_loss_that(self, losses):
        assert judge(RULE.from_history, evaluated(*losses)) is None

    def test_where_the_training_loss_rises_too(self):
        up = FALLS[::-1]
        assert judge(RULE.from_history, evaluated(1.0, 0.8, 0.7, 0.75, 0.85, 0.95, 1.0, 1.2, training=up)) is None


class TestNotApplicable:
    def test_without_evaluations(self):
        with pytest.raises(NotApplicable, match="needs the losses of evaluations"):
            judge(RULE.from_history, history(FALLS))

    def test_with_five_of_them(self):
        with pytest.raises(NotApplicable):
            judge(RULE.from_history, evaluated(1.0, 2.0, 3.0, 4.0, 5.0))

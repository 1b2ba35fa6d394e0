"""The linear models, against scikit-learn and by their own promises."""

import time

import numpy as np
import pytest

from diagnostics.collectors.baselines.linear import chosen_logistic, chosen_ridge, logistic, ridge

RNG = np.random.default_rng(0)
INPUTS = RNG.normal(size=(200, 5)).astype(np.float32)
CLASSES = (INPUTS[:, :3] + 0.3 * RNG.normal(size=(200, 3))).argmax(1)
NUMBERS = INPUTS @ RNG.normal(size=(5, 2)) + 3


class TestRidge:
    @pytest.mark.parametrize("rows", [200, 4], ids=["more rows", "more features"])
    def test_agrees_with_scikit_learn(self, rows):
        linear_model = pytest.importorskip("sklearn.linear_model")
        theirs = linear_model.Ridge(alpha=0.1 * rows).fit(INPUTS[:rows], NUMBERS[:rows])
        ours = ridge(INPUTS[:rows], NUMBERS[:rows], 0.1)
        assert ours.weights == pytest.approx(theirs.coef_.T, abs=1e-4)
        assert ours.bias == pytest.approx(theirs.intercept_, abs=1e-4)

    def test_finds_a_linear_relation(self):
        assert chosen_ridge(INPUTS, NUMBERS).model.scores(INPUTS) == pytest.approx(NUMBERS, abs=0.02)

    def test_prefers_a_large_penalty_where_there_is_nothing_to_learn(self):
        noise = np.random.default_rng(3)
        chosen = chosen_ridge(noise.normal(size=(60, 50)), noise.normal(size=(60, 1)))
        assert chosen.penalty == 10.0


class TestLogistic:
    def test_agrees_with_scikit_learn(self):
        linear_model = pytest.importorskip("sklearn.linear_model")
        theirs = linear_model.LogisticRegression(C=1 / (0.01 * len(INPUTS)), tol=1e-8).fit(INPUTS, CLASSES)
        ours = logistic(INPUTS, CLASSES, 3, 0.01, time.monotonic() + 60)
        differences = ours.weights - ours.weights.mean(1, keepdims=True)
        assert differences == pytest.approx(theirs.coef_.T - theirs.coef_.T.mean(1, keepdims=True), abs=0.01)

    def test_tells_classes_apart(self):
        model = chosen_logistic(INPUTS, CLASSES, 3, time.monotonic() + 60).model
        assert (model.scores(INPUTS).argmax(1) == CLASSES).mean() > 0.85
        assert model.complete

    def test_ends_when_the_time_is_over(self):
        assert not logistic(INPUTS, CLASSES, 3, 1e-4, time.monotonic() - 1).complete

    def test_large_inputs_do_not_make_it_diverge(self):
        assert np.isfinite(logistic(1e4 * INPUTS, CLASSES, 3, 1e-2, time.monotonic() + 60).weights).all()

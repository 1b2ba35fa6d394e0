"""What the losses of a run say, and what they do not."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.rules.shared import loss_curve
from tests.support.courses import answers, history

LN2 = float(np.log(2))


def diverged(run, predictions):
    return loss_curve.diverged(run.steps, run.losses, run.updates, predictions)


def oscillates(run):
    return loss_curve.oscillates(run.steps, run.losses)


def worst_curve(run, predictions, fewest):
    return loss_curve.worst_curve(run.steps, run.losses, run.updates, predictions, fewest)


class TestDiverged:
    def test_a_classifier_far_above_chance_for_good(self):
        losses = [0.7, 0.6, 0.5, *np.linspace(0.5, 3.0, 17)]
        curve = diverged(history(steps=400), answers(losses))
        assert (curve.began, curve.lowest) == (0.5, pytest.approx(0.55))
        assert (curve.since, curve.until, curve.chance) == (300, 380, pytest.approx(LN2))
        assert curve.ended == pytest.approx(2.6875)

    def test_not_by_an_early_spike(self):
        losses = [0.7, 5.0, 9.0, *np.linspace(2.0, 0.3, 17)]
        assert diverged(history(steps=400), answers(losses)) is None

    def test_not_by_a_spike_at_the_end(self):
        assert diverged(history(steps=400), answers([*np.linspace(0.7, 0.3, 18), 5.0, 9.0])) is None

    def test_any_loss_that_soars_while_the_weights_grow(self):
        losses = np.geomspace(1.0, 1e6, 100)
        assert diverged(history(losses, norms=np.linspace(1, 4, 5)), None).began == pytest.approx(4.8, abs=3)
        assert diverged(history(losses, update=0.02), None) is not None

    def test_not_a_loss_that_grows_a_thousandfold_by_small_steps(self):
        # As that of Q-learning does, while the values grow.
        assert diverged(history(np.geomspace(1e-3, 1.0, 400)), None) is None

    def test_a_loss_that_soars_until_it_is_not_finite(self):
        curve = diverged(history([1.0, 3.0, 50.0, 1e3, 1e5, 1e8, np.inf, np.nan], update=2.0), None)
        assert (curve.began, curve.ended, curve.since, curve.until) == (1.0, 1e8, 0, 5)

    def test_not_a_loss_that_is_suddenly_not_finite(self):
        assert diverged(history([1.0, 0.9, 1.1, 0.8, 1.2, 0.9, np.nan]), None) is None

    def test_not_known_of_ten_steps(self):
        with pytest.raises(NotApplicable, match="needs the losses of 40 steps"):
            diverged(history(np.geomspace(1, 1e9, 10)), None)

    def test_not_of_a_loss_below_zero(self):
        assert diverged(history(np.linspace(-1, 1e5, 100), update=0.1), None) is None

    def test_not_where_gradients_are_never_zeroed(self):
        run = history(np.geomspace(1.0, 1e6, 100), update=0.1, gradients_zeroed=np.zeros(100, np.int8))
        assert diverged(run, None) is None


class TestStuck:
    def stuck(self, losses, fewest=200, rates=0.1, **known):
        return loss_curve.stuck(
            history(steps=len(losses) * 20, rates=rates).steps, answers(losses, **known), fewest
        )

    def test_a_classifier_that_stays_at_chance(self):
        curve = self.stuck(LN2 + 0.01 * np.random.default_rng(0).standard_normal(20))
        assert (curve.since, curve.until) == (140, 380)
        assert curve.chance == pytest.approx(LN2)
        assert curve.ended == pytest.approx(LN2, abs=0.02)

    def test_the_level_of_classes_that_are_not_equally_common(self):
        chance = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
        assert self.stuck([chance] * 20, labels=(24, 8)).chance == pytest.approx(chance)

    def test_not_one_that_was_below_it_once(self):
        assert self.stuck([LN2] * 6 + [0.5] * 4 + [LN2] * 10) is None

    def test_not_one_that_is_on_its_way(self):
        assert self.stuck(np.linspace(1.05, 0.97, 20) * LN2) is None

    def test_not_one_whose_answers_are_right_more_often_than_chance(self):
        assert self.stuck([LN2] * 20, right=20) is None

    def test_not_one_that_learned(self):
        assert self.stuck(np.geomspace(0.7, 0.01, 20)) is None

    @pytest.mark.parametrize(
        ("known", "reason"),
        [
            ({"plain": False}, "needs a classifier whose loss is known to be an unweighted cross-entropy loss"),
            ({"fewest": 500}, "needs 500 steps"),
            ({"rates": np.linspace(0, 0.1, 400)}, "needs a run that is past its learning-rate warm-up"),
            ({"labels": (32, 0)}, "needs the labels of 100 examples, not all of one class"),
            ({"labels": [[32, 0], [0, 32]] * 10}, "needs batches of mixed classes"),
        ],
    )
    def test_not_known_without_evidence(self, known, reason):
        with pytest.raises(NotApplicable, match=reason):
            self.stuck([LN2] * 20, **known)


class TestOscillates:
    def run(self, losses, prints=None):
        return history(losses, prints=np.full(len(losses), 7, np.uint64) if prints is None else prints)

    def test_the_loss_of_one_batch_that_swings(self):
        curve = oscillates(self.run([1.0] + [0.5, 3.0] * 50))
        assert curve.swings == (0.5, 3.0)
        assert (curve.began, curve.since, curve.until) == (pytest.approx(8.5 / 6), 50, 100)

    def test_not_if_it_falls(self):
        assert oscillates(self.run(np.geomspace(3, 0.1, 100) * np.tile([1, 2], 50))) is None

    def test_not_if_it_is_a_slow_wave(self):
        assert oscillates(self.run(2 + np.sin(np.arange(100) / 8))) is None

    def test_not_if_it_hovers(self):
        assert oscillates(self.run(1 + 0.05 * np.random.default_rng(0).standard_normal(100))) is None

    def test_one_batch_among_several(self):
        prints = np.tile(np.array([1, 2, 3], np.uint64), 100)
        losses = np.where(prints == 1, np.tile([1.0, 1.0, 1.0, 4.0, 1.0, 1.0], 50), 1.0)
        assert oscillates(self.run(losses, prints)).swings == (1.0, 4.0)

    def test_not_if_it_is_noise_as_that_of_dropout_near_the_best(self):
        for seed in range(200):
            noise = np.random.default_rng(seed).exponential(0.01, 100)
            assert oscillates(self.run(noise)) is None

    def test_not_known_where_no_batch_comes_back(self):
        with pytest.raises(NotApplicable, match="needs a batch that was used 100 times"):
            oscillates(self.run([0.5, 3.0] * 50, np.arange(1, 101, dtype=np.uint64)))


class TestWorstCourse:
    def test_names_what_it_found(self):
        name, curve = worst_curve(history([LN2] * 400), answers([LN2] * 20), 200)
        assert (name, curve.since) == ("stuck", 140)

    def test_not_known_if_nothing_could_be_judged(self):
        with pytest.raises(NotApplicable, match="needs the loss at each step"):
            worst_curve(history(steps=400, prints=np.zeros(400, np.uint64)), None, 200)

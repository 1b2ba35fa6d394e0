"""The probability of the right class, and when a run counts as learned."""

import numpy as np
import pytest

from diagnostics.collectors.shared.loss_match import Recognised
from diagnostics.collectors.subset_trials.answers import Seen, binary_answers, class_answers

LOGITS = np.log(np.array([[0.7, 0.2, 0.1], [0.1, 0.1, 0.8]]))
LABELS = np.array([0, 2])


class TestClassAnswers:
    @pytest.mark.parametrize(
        ("scores", "reads"),
        [(LOGITS + 3, "logits"), (LOGITS, "log_probabilities"), (np.exp(LOGITS), "probabilities"), (LOGITS, None)],
    )
    def test_the_probability_of_the_right_class_whatever_the_scores_are(self, scores, reads):
        answers = class_answers(scores, LABELS, reads, None)
        assert answers.values == pytest.approx([0.7, 0.8])
        assert answers.right == 1.0

    def test_counts_the_answers_that_are_right(self):
        assert class_answers(LOGITS, np.array([1, 2]), "logits", None).right == 0.5

    def test_ignored_positions_do_not_count(self):
        answers = class_answers(LOGITS[None], np.array([[0, -100]]), "logits", -100)
        assert answers.values == pytest.approx([0.7])
        assert answers.probabilities is None

    @pytest.mark.parametrize("labels", [[0, 3], [-1, 0], [-100, -100]])
    def test_labels_out_of_range_and_no_label_at_all_have_no_answers(self, labels):
        assert class_answers(LOGITS, np.array(labels), "logits", -100) is None


class TestBinaryAnswers:
    def test_the_probability_of_the_target(self):
        answers = binary_answers(np.log(np.array([[0.9 / 0.1], [0.2 / 0.8]])), np.array([[1.0], [0.0]]), "logits")
        assert answers.values == pytest.approx([0.9, 0.8])
        assert answers.probabilities == pytest.approx(np.array([[0.1, 0.9], [0.8, 0.2]]))

    def test_soft_targets_have_none(self):
        assert binary_answers(np.zeros(2), np.array([0.3, 1.0]), "logits") is None


def seen(kind="cross_entropy", floor=0.69, examples=2):
    made = Seen(examples, kind)
    made.start(Recognised(kind, floor))
    return made


class TestSeen:
    def test_right_and_sharp_is_learned(self):
        run = seen()
        run.add(0.3, class_answers(LOGITS, LABELS, "logits", None))
        assert not run.learned  # 0.75 on average
        run.add(0.1, class_answers(3 * LOGITS, LABELS, "logits", None))
        assert run.learned

    def test_sharp_and_wrong_is_not(self):
        run = seen()
        run.add(0.1, class_answers(3 * LOGITS, np.array([0, 1]), "logits", None))
        assert not run.learned

    @pytest.mark.parametrize(("losses", "learned"), [((1.0, 0.2), False), ((1.0, 0.1), True)])
    def test_a_regression_is_learned_at_a_tenth_of_the_constant_answers_loss(self, losses, learned):
        run = seen("mean_squared_error", 1.0)
        for loss in losses:
            run.add(loss, None)
        assert run.learned is learned

    @pytest.mark.parametrize(("last", "learned"), [(0.5, False), (0.04, True)])
    def test_one_value_is_learned_at_a_tenth_of_its_first_error(self, last, learned):
        run = seen("mean_squared_error", 0.0, examples=1)
        for loss in (4.0, last):
            run.add(loss, None)
        assert run.learned is learned

    @pytest.mark.parametrize(
        ("losses", "learned"), [((2.0, 0.5), False), ((2.0, 0.1), True), ((-1.0, -9.0), False)]
    )
    def test_an_unknown_loss_is_learned_near_zero_and_never_below(self, losses, learned):
        run = Seen(2, "other")
        for loss in losses:
            run.add(loss, None)
        assert run.learned is learned

    def test_keeps_fewer_and_fewer_steps_and_the_last(self):
        run = seen()
        for step in range(50):
            run.add(1.0, class_answers(LOGITS + step, LABELS, "logits", None))
        steps, answers, shares = run.history()
        assert steps == (0, 1, 2, 3, 4, 6, 8, 11, 15, 20, 27, 36, 48, 49)
        assert answers.shape == (14, 2)
        assert shares.shape == (14, 2, 3)

    def test_keeps_no_probabilities_of_many_examples(self):
        run = seen(examples=6)
        run.add(1.0, class_answers(np.tile(LOGITS, (3, 1)), np.tile(LABELS, 3), "logits", None))
        _, answers, shares = run.history()
        assert answers.shape == (1, 6)
        assert shares is None

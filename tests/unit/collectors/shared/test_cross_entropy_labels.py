import numpy as np
import pytest

from diagnostics.collectors.shared.target_recovery import recognise


def softmax(scores):
    shares = np.exp(scores)
    return shares / shares.sum(axis=1, keepdims=True)


def passes(sizes, classes=4, seed=0):
    """Return scores (n, classes), labels (n,) and where each pass begins."""
    random = np.random.default_rng(seed)
    scores, labels = random.normal(size=(sum(sizes), classes)), random.integers(classes, size=sum(sizes))
    return scores, labels, np.cumsum([0, *sizes[:-1]])


class TestRecognise:
    def seen(self, scores, gradient, starts, tolerance=1e-3):
        return recognise(scores, gradient, starts, np.full(len(scores), tolerance))

    def test_reads_the_labels_of_several_passes(self):
        scores, labels, starts = passes((8, 3, 5))
        found = self.seen(scores, (softmax(scores) - np.eye(4)[labels]) / 8, starts)
        assert (found.labels == labels).all()
        assert found.softmax.all()
        assert found.plain.all()
        assert found.shares == pytest.approx(softmax(scores))

    def test_tells_each_pass_from_the_others(self):
        scores, labels, starts = passes((8, 8, 8))
        gradient = softmax(scores) - np.eye(4)[labels]
        gradient[8:16] = 2 * (scores[8:16] - 1)  # a squared error
        gradient[16:] *= np.linspace(1, 2, 8)[:, None]  # examples that count differently
        found = self.seen(scores, gradient, starts)
        assert found.softmax.tolist() == [True, False, True]
        assert found.plain.tolist() == [True, False, False]
        assert (found.labels[8:16] == -1).all()
        assert (found.labels[16:] == labels[16:]).all()

    def test_leaves_out_examples_that_were_ignored(self):
        scores, labels, starts = passes((8,))
        gradient = softmax(scores) - np.eye(4)[labels]
        gradient[3] = 0
        found = self.seen(scores, gradient, starts)
        assert found.labels[3] == -1
        assert found.plain.all()

    def test_says_nothing_of_examples_that_the_model_is_quite_sure_of(self):
        scores = 100.0 * np.eye(4)
        found = self.seen(scores, np.zeros((4, 4)), np.array([0]))
        assert not found.telling.any()
        assert (found.labels == -1).all()

    def test_says_nothing_of_two_classes_and_a_few_examples(self):
        # Any two numbers that add up to 0 are of that form.
        scores, labels, starts = passes((4,), classes=2)
        found = self.seen(scores, softmax(scores) - np.eye(2)[labels], starts)
        assert not found.telling.any()
        assert (found.labels == -1).all()

    @pytest.mark.parametrize("far", [250.0, -250.0])
    def test_an_absolute_error_of_numbers_far_from_0_is_none(self, far):
        prices, targets, starts = far + passes((32,), classes=1)[0], far, np.array([0])
        gradient = np.sign(prices - targets) / 32
        found = self.seen(np.hstack([np.zeros_like(prices), prices]), np.hstack([-gradient, gradient]), starts)
        assert found.telling.all()
        assert not found.softmax.any()
        assert not found.plain.any()
        assert (found.labels == -1).all()

    def test_answers_of_two_classes_that_are_mostly_sure_and_right_are_read(self):
        logits, labels = np.repeat([[8.0], [-8.0], [0.5], [-0.5]], 8, axis=0), np.repeat([1, 0, 1, 1], 8)
        scores = np.hstack([np.zeros_like(logits), logits])
        found = self.seen(scores, softmax(scores) - np.eye(2)[labels], np.array([0]))
        assert found.plain.all()
        assert (found.labels == labels).all()

import numpy as np

from diagnostics.collectors.shared.learnability import FEWEST, KeptRows, numbered_fit, order_fit, simple_fit
from diagnostics.facts.training import LossHistory

RNG = np.random.default_rng(0)


def test_a_linear_relation_is_found():
    inputs = RNG.normal(size=(300, 6))
    fit = simple_fit(inputs, inputs[:, :1] * 2 + 0.1 * RNG.normal(size=(300, 1)), of_classes=False)
    assert (fit.fitted, fit.predicted) == (150, 150)
    assert fit.error < 0.05 * fit.constant_error


def test_a_ring_is_found_by_the_radial_fit():
    inputs = RNG.normal(size=(400, 2))
    ring = (np.square(inputs).sum(axis=1) > 1.4).astype(float)
    fit = simple_fit(inputs, np.eye(2)[ring.astype(int)], of_classes=True)
    assert not fit.linear
    assert fit.error < 0.4 * fit.constant_error


def test_tokens_are_counted():
    tokens = RNG.integers(0, 40, (400, 12))
    label = ((tokens < 20).mean(axis=1) > 0.5).astype(int)
    fit = simple_fit(tokens, np.eye(2)[label], of_classes=True)
    assert fit.error < 0.5 * fit.constant_error


def test_pixels_are_numbers():
    pixels = RNG.integers(0, 256, (400, 12)).astype(np.uint8)
    fit = simple_fit(pixels, (pixels[:, :1] / 255.0), of_classes=False)
    assert fit.error < 0.1 * fit.constant_error


def test_equal_rows_count_once():
    inputs = np.repeat(RNG.normal(size=(FEWEST - 1, 4)), 10, axis=0)
    assert simple_fit(inputs, RNG.normal(size=(len(inputs), 1)), of_classes=False) is None


def test_kept_rows_give_each_step_the_constant_loss():
    inputs = RNG.normal(size=(200, 3))
    losses = LossHistory(np.arange(5), np.linspace(1, 0.9, 5))
    kept = KeptRows("mean_squared_error", inputs, inputs[:, :1])
    targets = kept.history(losses)
    np.testing.assert_allclose(targets.constant_losses, inputs[:, 0].var())
    assert targets.fit.error < 0.01
    assert kept.history(None) is None


def test_kept_rows_tell_which_number_is_the_target():
    inputs = RNG.normal(size=(200, 4, 1)).astype(np.float32)
    losses = LossHistory(np.arange(5), np.linspace(1, 0.9, 5))
    copied = KeptRows("mean_squared_error", inputs, inputs[:, 3].astype(float)).history(losses).copied
    assert (copied.column, copied.columns, copied.rows, copied.equal) == (3, 4, 200, True)
    labels = (inputs[:, 1, 0] > 0).astype(int)
    table = np.concatenate([inputs[:, :, 0], labels[:, None] * 2.0 - 1], axis=1)
    coded = KeptRows("binary_cross_entropy", table, labels[:, None].astype(float)).history(losses).copied
    assert (coded.column, coded.values) == (4, 2)
    assert KeptRows("binary_cross_entropy", table, np.eye(2)[labels]).history(losses).copied == coded
    pixels = KeptRows("mean_squared_error", (inputs[:, :, 0] * 9).astype(int), inputs[:, 3].astype(float))
    assert pixels.history(losses).copied is None


def test_kept_rows_of_an_absolute_error_compare_with_the_median():
    inputs = RNG.normal(size=(200, 3))
    targets = np.exp(inputs[:, :1])
    losses = LossHistory(np.arange(5), np.linspace(1, 0.9, 5))
    history = KeptRows("mean_absolute_error", inputs, targets).history(losses)
    np.testing.assert_allclose(history.constant_losses, np.abs(targets - np.median(targets)).mean())
    assert history.kind == "mean_absolute_error"


class TestOrderFit:
    """Whether targets depend on where the tokens of a row stand."""

    TOKENS = np.random.default_rng(3).integers(0, 30, (600, 12))

    def errors(self, labels):
        fit = order_fit(self.TOKENS, np.eye(2)[labels.astype(int)], of_classes=True)
        return fit.of_counts, fit.of_places

    def test_places_tell_whether_the_first_token_is_larger(self):
        of_counts, of_places = self.errors(self.TOKENS[:, 0] > self.TOKENS[:, -1])
        assert of_places < 0.8 * of_counts
        assert 0.4 < of_counts < 0.6

    def test_counts_tell_a_sum(self):
        of_counts, of_places = self.errors(self.TOKENS.sum(axis=1) > 174)
        assert of_counts < 0.25
        assert of_places > 1.2 * of_counts

    def test_nothing_tells_labels_drawn_at_random(self):
        of_counts, of_places = self.errors(np.random.default_rng(4).random(600) < 0.5)
        assert of_places > 0.8 * of_counts

    def test_needs_100_different_rows(self):
        assert order_fit(np.tile(self.TOKENS[:99], (3, 1)), np.ones((297, 1)), of_classes=False) is None


class TestNumberedFit:
    def test_finds_no_order_in_the_numbers_of_groups(self):
        classes = RNG.integers(0, 8, 400)
        inputs = RNG.normal(size=(8, 6))[classes] + 0.5 * RNG.normal(size=(400, 6))
        found = numbered_fit(inputs, classes[:, None] + 0.004)
        assert found.fit.error < 0.3
        assert found.rounded > found.fit.error + 0.15
        assert found.as_good > 0.15 * found.orders

    def test_finds_the_order_of_grades(self):
        inputs = RNG.normal(size=(400, 6))
        grades = np.clip(np.round(inputs[:, :1] * 2 + inputs[:, 1:2]), -3, 3)
        assert numbered_fit(inputs, grades).as_good == 0

    def test_finds_the_order_of_months(self):
        months = RNG.integers(1, 13, 400)
        season = np.stack([np.cos(months / 6 * np.pi), np.sin(months / 6 * np.pi)], axis=1)
        found = numbered_fit(season + 0.2 * RNG.normal(size=(400, 2)), months[:, None].astype(float))
        assert found.as_good < 0.1 * found.orders

    def test_needs_a_few_whole_numbers_one_a_row(self):
        inputs = RNG.normal(size=(300, 4))
        assert numbered_fit(inputs, inputs[:, :1]) is None
        assert numbered_fit(inputs, RNG.integers(0, 3, (300, 1)).astype(float)) is None
        assert numbered_fit(inputs, np.arange(300.0)[:, None]) is None
        assert numbered_fit(inputs, RNG.integers(0, 8, (300, 2)).astype(float)) is None

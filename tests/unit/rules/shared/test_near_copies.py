"""Near-copies of training rows among evaluation rows, and healthy rows that resemble them."""

import numpy as np
import pytest

from diagnostics.engine.rule import NotApplicable
from diagnostics.facts.inputs import InputFacts, InputSample
from diagnostics.rules.shared.near_copies import near_copies


def sample(rows, batch):
    parts = [np.asarray(rows[start : start + batch], np.float32) for start in range(0, len(rows), batch)]
    return InputSample(tuple(part[:32, :, None] for part in parts), rows.shape[1], traits=tuple(parts))


def compare(training, evaluation, outputs=2, batch=64, passes=100):
    facts = InputFacts({"0": sample(training[: 16 * batch], batch)}, {"0": sample(evaluation, passes)}, 1, outputs)
    return near_copies(facts)


def dealt(rows, seed=0):
    """Split rows at random: three quarters for training."""
    rows = rows[np.random.default_rng(seed).permutation(len(rows))]
    return rows[: len(rows) * 3 // 4], rows[len(rows) * 3 // 4 :]


def jittered(rows, copies, scale=0.05, seed=1):
    rows = np.repeat(rows, copies, axis=0)
    return rows + scale * np.random.default_rng(seed).normal(size=rows.shape)


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class TestFinds:
    @pytest.mark.parametrize(("copies", "scale"), [(2, 0.05), (4, 0.01), (4, 0.05), (4, 0.2), (6, 0.1)])
    def test_jittered_copies(self, rng, copies, scale):
        found = compare(*dealt(jittered(rng.normal(size=(1200 // copies, 20)), copies, scale)))
        assert found.rows == 300
        assert found.near > 150
        assert found.distance < 0.35
        assert found.by_chance < 0.001
        assert found.expected / 2 < found.pairs < 2 * found.expected

    @pytest.mark.parametrize("unit", [1e-6, 1e6])
    def test_them_at_any_scale(self, rng, unit):
        assert compare(*dealt(unit * jittered(rng.normal(size=(300, 20)), 4))) is not None

    def test_copies_of_one_rare_class_alone(self, rng):
        rare = jittered(rng.normal(size=(150, 24)), 6)
        found = compare(*dealt(np.concatenate([rng.normal(size=(900, 24)), rare])))
        assert 0.3 < found.near / found.rows < 0.6

    def test_copies_beside_new_rows_that_are_evaluated_too(self, rng):
        training, evaluation = dealt(jittered(rng.normal(size=(400, 20)), 4))
        assert compare(training, np.concatenate([evaluation[:200], rng.normal(size=(300, 20))])) is not None

    def test_copies_beside_training_rows_that_are_evaluated_too(self, rng):
        training, evaluation = dealt(jittered(rng.normal(size=(400, 20)), 4))
        found = compare(training, np.concatenate([training[:200], evaluation]))
        assert found.rows == 400  # not the 200 training rows

    def test_copies_in_two_inputs(self, rng):
        rows = jittered(rng.normal(size=(300, 8)), 4)
        training, evaluation = dealt(rows)
        parts = [
            {name: sample(side[:1024, columns], 64) for name, columns in (("a", slice(4)), ("b", slice(4, 8)))}
            for side in (training, evaluation)
        ]
        assert near_copies(InputFacts(*parts)) is not None


class TestFindsNothing:
    @pytest.mark.parametrize("width", [5, 8, 30])
    def test_among_independent_rows(self, rng, width):
        assert compare(*dealt(rng.normal(size=(1400, width)))) is None

    @pytest.mark.parametrize("rank", [1, 2, 3])
    def test_in_few_directions(self, rng, rank):
        assert compare(*dealt(np.tanh(rng.normal(size=(1400, rank)) @ rng.normal(size=(rank, 12))))) is None

    def test_among_heavy_tails(self, rng):
        assert compare(*dealt(rng.standard_cauchy(size=(1400, 8)))) is None

    @pytest.mark.parametrize("noise", [0.01, 0.1])
    def test_among_noisy_bits(self, rng, noise):
        assert compare(*dealt(rng.integers(2, size=(1400, 8)) + noise * rng.normal(size=(1400, 8)))) is None

    def test_among_squares_at_few_places_with_noise(self, rng):
        images = 0.1 * rng.normal(size=(1200, 8, 8))
        for image, (down, right) in zip(images, rng.integers(6, size=(1200, 2)), strict=True):
            image[down : down + 3, right : right + 3] += 1
        assert compare(*dealt(images.reshape(1200, -1)[:, ::2])) is None

    def test_among_tight_classes(self, rng):
        prototypes = rng.normal(size=(200, 16))[rng.integers(200, size=1400)]
        rows = prototypes + 0.1 * rng.normal(size=prototypes.shape)
        assert compare(*dealt(rows), outputs=200) is None

    def test_in_large_clusters(self, rng):
        prototypes = rng.normal(size=(20, 16))[rng.integers(20, size=1400)]
        assert compare(*dealt(prototypes + 0.1 * rng.normal(size=prototypes.shape))) is None

    @pytest.mark.parametrize("batch", [16, 32, 64])
    def test_in_a_series_that_varies_slowly(self, rng, batch):
        rows = np.zeros((2500, 8))
        for number in range(1, len(rows)):
            rows[number] = 0.99 * rows[number - 1] + 0.1 * rng.normal(size=8)
        assert compare(*dealt(rows), batch=batch) is None

    def test_in_windows_of_a_series_cut_in_time(self, rng):
        windows = np.lib.stride_tricks.sliding_window_view(np.cumsum(rng.normal(size=1500)), 30)
        assert compare(windows[:1100], windows[1130:]) is None

    def test_where_only_training_rows_were_copied(self, rng):
        training = jittered(rng.normal(size=(300, 20)), 4)[rng.permutation(1200)]
        held = rng.normal(size=(300, 20))
        assert compare(training, held) is None
        assert (
            compare(training, np.concatenate([training[:600], held])) is None
        )  # and training accuracy is measured

    @pytest.mark.parametrize("passes", [1, 32, 256])
    def test_where_the_originals_of_training_copies_are_evaluated(self, rng, passes):
        rows = rng.normal(size=(400, 20))
        assert compare(jittered(rows, 4)[rng.permutation(1600)], rows, passes=passes) is None

    @pytest.mark.parametrize("replacement", [False, True])
    def test_where_noise_is_drawn_anew_and_training_rows_are_evaluated(self, rng, replacement):
        rows = rng.normal(size=(400, 20))
        order = rng.integers(400, size=1024) if replacement else np.tile(np.arange(400), 3)[:1024]
        assert compare(jittered(rows[order], 1), rows) is None

    def test_in_contrastive_training(self, rng):
        rows = rng.normal(size=(512, 20))
        views = [
            jittered(rows[start : start + 32], 1, seed=start + n) for start in range(0, 512, 32) for n in (0, 1)
        ]
        assert compare(np.concatenate(views), rows) is None


class TestNotApplicable:
    @pytest.mark.parametrize(("training", "evaluation"), [(150, 300), (600, 40)])
    def test_with_few_rows(self, rng, training, evaluation):
        with pytest.raises(NotApplicable, match="200 different training rows"):
            compare(rng.normal(size=(training, 9)), rng.normal(size=(evaluation, 9)))

    def test_where_all_rows_are_training_rows(self, rng):
        rows = rng.normal(size=(600, 9))
        with pytest.raises(NotApplicable, match="not equal"):
            compare(rows, rows[:300])

    @pytest.mark.parametrize("levels", [2, 17, 256])
    def test_where_numbers_repeat(self, rng, levels):
        with pytest.raises(NotApplicable, match="hardly repeat"):
            compare(*dealt(rng.integers(levels, size=(1400, 20))))

    def test_with_few_numbers(self, rng):
        with pytest.raises(NotApplicable, match="hardly repeat"):
            compare(*dealt(rng.normal(size=(1400, 4))))

    def test_without_the_rows(self, rng):
        rows = InputSample((rng.normal(size=(32, 8, 1)).astype(np.float32),), 8)
        with pytest.raises(NotApplicable, match="same floating-point inputs"):
            near_copies(InputFacts({"0": rows}, {"0": rows}))

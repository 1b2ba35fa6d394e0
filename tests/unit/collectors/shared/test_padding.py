"""Padded rows with and without their padding, given functions of arrays for models."""

import numpy as np
import pytest

from diagnostics.collectors.shared.dependence.padding import (
    MAX_COMPARED,
    MAX_ROWS,
    compare_padding,
    input_with_mask,
    masked_input,
    padded_input,
    separates,
)
from diagnostics.collectors.shared.dependence.subject import OutOfTime, Unclear

RANDOM = np.random.default_rng(0)
WIDTH, SIZE = 20, 32
LENGTHS = np.r_[RANDOM.integers(3, 12, SIZE - 4), [WIDTH] * 4]
WORDS = np.arange(WIDTH) < LENGTHS[:, None]
IDS = np.where(WORDS, RANDOM.integers(1, 50, (SIZE, WIDTH)), 0)
VECTORS = RANDOM.normal(size=(50, 3)).astype("float32")
LABELS = RANDOM.integers(3, size=SIZE)


def mean_of_words(given):
    ids = given["ids"]
    counted = (ids != 0)[..., None]
    return (VECTORS[ids] * counted).sum(1) / counted.sum(1)


def mean_of_all(given):
    return VECTORS[given["ids"]].mean(1)


def decaying(given):
    """Forget half of everything at each position, as a recurrent layer does."""
    state = np.zeros((len(given["ids"]), 3), "float32")
    for position in range(given["ids"].shape[1]):
        state = state / 2 + VECTORS[given["ids"][:, position]]
    return state


def compared(call, inputs=None, target=LABELS):
    inputs = {"ids": IDS} if inputs is None else inputs
    return compare_padding(call, inputs, padded_input(inputs), target)


def of_one_width(call):
    def refusing(given):
        if given["ids"].shape[1] != WIDTH:
            raise ValueError("this model needs one length")
        return call(given)

    return refusing


def test_a_mean_of_the_words_does_not_depend_on_the_padding():
    facts = compared(mean_of_words)
    assert (facts.rows, facts.longest, facts.fails) == (MAX_ROWS, WIDTH - LENGTHS.min(), 0)
    assert (facts.removed.rows, facts.removed.changed) == (14, 0)
    assert facts.with_padding == pytest.approx(facts.without, rel=1e-6)
    # float32: NumPy sums 20 numbers in another order than 5.
    assert facts.removed.change < 1e-6


def test_a_mean_of_all_positions_does():
    facts = compared(mean_of_all)
    rows = IDS[np.argsort(LENGTHS, kind="stable")[: SIZE - 4 : 2]]
    with_padding, without = (call({"ids": rows}).argmax(1) for call in (mean_of_all, mean_of_words))
    assert facts.removed.changed == (with_padding != without).sum() > 0
    assert facts.removed.by_class
    assert facts.removed.noise == 0 < facts.removed.change
    assert facts.with_padding == pytest.approx(facts.without * LENGTHS.min() / WIDTH, rel=0.5)


def test_words_before_the_padding_are_forgotten_by_a_state_that_decays():
    facts = compared(decaying)
    assert facts.with_padding < 0.01 * facts.without
    assert facts.spread < 0.01 * facts.without


def test_padding_is_moved_where_a_model_needs_one_length():
    facts = compared(of_one_width(decaying))
    assert facts.removed.moved
    assert facts.with_padding < 0.01 * facts.without


def test_values_count_where_the_target_names_no_classes():
    facts = compared(mean_of_all, target=RANDOM.normal(size=(SIZE, 3)))
    assert not facts.removed.by_class
    assert facts.removed.changed > 0
    assert compared(mean_of_words, target=None).removed.changed == 0


@pytest.mark.parametrize("logits", [True, False])
def test_one_number_is_a_class_of_two(logits):
    def sign(given):
        mean = VECTORS[given["ids"]][..., 0].mean(1)
        return mean if logits else 1 / (1 + np.exp(-mean))

    facts = compared(sign, target=LABELS.clip(0, 1))
    without = np.array([VECTORS[row[row != 0], 0].mean() for row in IDS])
    changed = ((VECTORS[IDS][..., 0].mean(1) > 0) != (without > 0))[LENGTHS < WIDTH]
    assert facts.removed.by_class
    assert 0 < facts.removed.changed <= changed.sum()


def test_a_change_within_the_noise_is_none():
    draws = np.random.default_rng(1)

    def noisy(given):
        return mean_of_words(given) + draws.normal(size=(len(given["ids"]), 3)).astype("float32")

    facts = compared(noisy)
    assert facts.removed.noise > 0.5
    assert facts.removed.changed == 0


def test_a_change_by_other_rows_of_the_call_is_noise():
    def mixed(given):
        found = mean_of_words(given)
        return found - found.mean(0)

    facts = compared(mixed)
    assert facts.removed.noise > 0
    assert facts.removed.changed == 0


def test_other_inputs_are_cut_along():
    widths = set()

    def call(given):
        assert given["ids"].shape == given["types"].shape
        assert len(given["lengths"]) == len(given["ids"])
        assert (np.diff(given["lengths"]) <= 0).all()  # packed rows must be sorted
        widths.add(given["ids"].shape[1])
        return mean_of_words(given)

    compared(call, {"ids": IDS, "types": np.ones_like(IDS), "lengths": LENGTHS})
    assert {WIDTH, LENGTHS.min()} <= widths


def test_rows_are_compared_up_to_a_bound_from_short_to_long():
    many = np.concatenate([IDS] * 4)
    facts = compare_padding(mean_of_all, {"ids": many}, padded_input({"ids": many}))
    assert 0 < facts.removed.rows <= MAX_COMPARED


def test_predictions_that_only_padding_keeps_finite_are_counted():
    def inverted(given):
        blank = given["ids"] == 0
        with np.errstate(invalid="ignore"):
            return (VECTORS[given["ids"]] * blank[..., None]).sum(1) / blank.sum(1)[:, None]

    for call in (inverted, of_one_width(inverted)):
        facts = compared(call)
        assert (facts.fails, facts.removed) == (MAX_ROWS, None)


def test_unclear_without_one_prediction_for_each_row():
    with pytest.raises(Unclear, match="does not return a single prediction"):
        compared(lambda given: VECTORS[given["ids"]])
    with pytest.raises(Unclear, match="not finite"):
        compared(lambda given: mean_of_all(given) * np.nan)
    with pytest.raises(Unclear, match="is not the batch axis"):
        compared(mean_of_all, {"ids": IDS, "table": np.zeros(5)})


def test_the_end_of_the_time_is_passed_on():
    def late(given):
        raise OutOfTime

    with pytest.raises(OutOfTime):
        compared(late)


class TestPaddedInput:
    @pytest.mark.parametrize(
        "ids",
        [
            IDS[:, ::-1],
            np.where(WORDS, IDS, 7),
            IDS[LENGTHS == WIDTH],
            np.where(np.arange(WIDTH) < 9, IDS.clip(1), 0),
        ],
        ids=["padded in front", "a token of the texts", "no padding", "one length"],
    )
    def test_is_not_seen_in(self, ids):
        with pytest.raises(Unclear):
            padded_input({"ids": ids})

    def test_is_seen_with_another_token(self):
        padded = padded_input({"ids": np.where(WORDS, IDS, 99)})
        assert padded.blank == 99
        assert np.array_equal(padded.words, WORDS)

    def test_is_seen_in_vectors_of_zeros(self):
        padded = padded_input({"frames": VECTORS[IDS] * WORDS[..., None]})
        assert padded.blank is None
        assert np.array_equal(padded.words, WORDS)


class TestMaskedInput:
    @pytest.mark.parametrize("words", [WORDS, WORDS[:, ::-1]], ids=["behind", "in front"])
    def test_is_the_one_whose_padding_a_mask_marks(self, words):
        ids = np.where(words, 5, 3)
        padded = masked_input({"0": np.zeros(SIZE), "1": ids}, words.astype("int64"))
        assert (padded.name, padded.blank) == ("1", 3)
        assert np.array_equal(padded.words, words)

    @pytest.mark.parametrize(
        "mask",
        [
            np.ones_like(IDS),
            RANDOM.integers(2, size=IDS.shape),
            (np.arange(WIDTH) < np.minimum(LENGTHS, 4)[:, None]).astype(int),
            IDS,
        ],
        ids=["no padding", "not at one end", "words behind it", "no mask"],
    )
    def test_is_none_for(self, mask):
        assert masked_input({"ids": IDS}, mask) is None


def test_masks_of_any_kind_separate_words_from_padding():
    for mask in (WORDS, ~WORDS, np.where(WORDS, 0.0, -np.inf), WORDS[:, None, None, :]):
        assert separates(mask, WORDS)
    assert separates(np.zeros((SIZE, WIDTH, WIDTH)), WORDS)
    assert not separates(IDS, WORDS)
    assert not separates(np.zeros_like(IDS), WORDS)


def test_keeps_the_effect_of_the_words_if_the_time_is_over_then():
    shortest = sorted(set(LENGTHS.tolist()))[:2]

    def hurried(given):
        if given["ids"].shape[1] not in (*shortest, WIDTH):
            raise OutOfTime
        return decaying(given)

    facts = compared(hurried)
    assert facts.removed is None
    assert facts.without > 0


@pytest.mark.parametrize("mask", [WORDS.astype(int), ~WORDS])
def test_finds_the_input_whose_padding_a_mask_marks_whichever_way_round(mask):
    found = input_with_mask({"ids": IDS, "mask": mask})
    assert (found.name, found.blank) == ("ids", 0)
    assert np.array_equal(found.words, WORDS)
    series = VECTORS[IDS] * WORDS[..., None]
    found = input_with_mask({"series": series, "mask": mask})
    assert found.name == "series"
    assert np.array_equal(found.words, WORDS)


def test_finds_no_input_with_a_mask_that_marks_no_padding():
    ones = np.ones_like(IDS)
    assert input_with_mask({"ids": IDS, "mask": ones}) is None
    assert input_with_mask({"ids": np.where(WORDS, IDS, IDS[:, ::-1] + 1), "mask": ones}) is None
    assert input_with_mask({"ids": IDS}) is None

"""`LoaderChecks`, what reads single items: round trips, the same item twice, evaluation data without chance."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import TensorDataset

import diagnostics
from tests.support.rows import (
    Rows,
    Stream,
    append_to_stored,
    count_reads,
    images,
    noise_by_reads,
    numpy_noise,
    own_noise,
    python_flip,
    scale_in_place,
    system_noise,
    torch_noise,
)

CHECKS = diagnostics.LoaderChecks()


def to_tensor(image):
    return torch.from_numpy(image).permute(2, 0, 1).float() / 255


def to_image(tensor):
    return (tensor * 255).round().to(torch.uint8).permute(1, 2, 0).numpy()


MEAN, STD = torch.tensor([0.48, 0.45, 0.4])[:, None, None], torch.tensor([0.23, 0.22, 0.25])[:, None, None]
WORDS = {
    word: number for number, word in enumerate(("[PAD]", "[CLS]", "[SEP]", "[UNK]", "a", "cat", "sat", "here"))
}
NAMES = list(WORDS)


def tokens(text):
    return [1, *(WORDS.get(word, 3) for word in text.split()), 2]


def words(ids, skip=True):
    return " ".join(NAMES[i] for i in ids if not skip or i > 3)


class TestRoundTrip:
    @pytest.mark.parametrize(
        ("items", "encode", "decode"),
        [
            (images(), to_tensor, to_image),
            (images(), lambda x: (to_tensor(x) - MEAN) / STD, lambda y: to_image(y * STD + MEAN)),
            (["a cat sat here", "here a cat"], tokens, words),
            ([{"x": np.arange(3.0)}], lambda d: {**d, "x": d["x"] / 10}, lambda d: {**d, "x": 10 * d["x"]}),
            (torch.tensor([[-2.3, -0.000321142, 1.4]]), lambda x: x.exp(), lambda y: y.log()),
        ],
        ids=["image", "normalised", "text", "dict", "rounding"],
    )  # fmt: skip
    def test_is_silent_about_an_inverse(self, items, encode, decode):
        result = CHECKS.round_trip(items, encode, decode)
        assert result.passed
        assert result.message == f"{min(len(items), 8)} item{'s' * (len(items) > 1)} came back."

    @pytest.mark.parametrize(
        ("items", "encode", "decode", "said"),
        [
            (images(), to_tensor, lambda t: (t * 255).byte().numpy(), "shape (8, 5, 3) and shape (3, 8, 5)"),
            (images(), to_tensor, lambda t: (t * 255).byte().numpy(), "axes in the order (2, 0, 1): height"),
            (
                images(),
                lambda x: to_tensor(x) * 0.9999,
                lambda t: (t * 255).to(torch.uint8).permute(1, 2, 0).numpy(),
                "off by one at most: the conversion to integers cuts off",
            ),
            (
                [to_tensor(image) for image in images()],
                lambda x: (x - MEAN) / STD,
                lambda y: y * STD,
                "(1x-0.48, 1x-0.45, 1x-0.4): decode does not undo the normalisation",
            ),
            (images(), lambda x: x[..., ::-1].copy(), lambda x: x, "reversed along axis 2: RGB and BGR"),
            (
                [np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4) ** 3],
                lambda x: (x - 0.3) / 0.2,
                lambda y: y * 0.2,
                "times the original - 0.3: decode does not undo the normalisation",
            ),
            (["A cat"], str.lower, str, "Only upper and lower case differ"),
            (["a cat"], tokens, lambda ids: words(ids, skip=False), "decode adds '[CLS]' and '[SEP]'"),
            (
                ["a dog sat"],
                tokens,
                lambda ids: words([i for i in ids if i > 2], skip=False),
                "come back as unknown",
            ),
            ([np.arange(9)], lambda x: x[:5], lambda x: x, "ends after 5 of 9: encode truncates"),
        ],
    )
    def test_says_what_decode_leaves_undone(self, items, encode, decode, said):
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.round_trip(items, encode, decode)
        text = str(raised.value)
        assert text.startswith("round trip: item 0 does not come back: decode(encode(x)) is not x. ")
        assert said in text
        assert "What to change: make decode the inverse" in text

    def test_allows_what_it_is_told_to(self):
        assert CHECKS.round_trip([np.arange(5)], lambda x: x, lambda x: x + 1, atol=1).passed
        assert CHECKS.round_trip([{"id": 1, "x": 2}], dict, lambda d: {"x": d["x"]}, may_change=["id"]).passed

    def test_leaves_the_items_alone(self):
        items = [np.ones(3)]

        def encode(x):
            x *= 2
            return x

        with pytest.raises(diagnostics.CheckFailed, match="2 times the original"):
            CHECKS.round_trip(items, encode, lambda x: x)
        assert (items[0] == 1).all()

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            ((images(), None, to_image), "round_trip() was given None as encode"),
            (([], to_tensor, to_image), "was given a list without items"),
            ((iter(images()), to_tensor, to_image), "which can be read only once"),
            ((7, to_tensor, to_image), "This check was given an int. It takes a dataset"),
            ((["text"], to_tensor, to_image), "called encode with 'text', and that raised TypeError"),
        ],
    )
    def test_says_what_is_wrong_with_its_arguments(self, arguments, said):
        with pytest.raises(diagnostics.InvalidInput) as raised:
            CHECKS.round_trip(*arguments)
        assert said in str(raised.value)


class TestSameItemTwice:
    @pytest.mark.parametrize(
        "dataset",
        [Rows(), Rows(own_noise), Rows(torch_noise), Rows(python_flip), Stream(noisy=True), images(),
         TensorDataset(torch.randn(5, 2), torch.arange(5))],
        ids=["plain", "own generator", "torch", "random", "stream", "list", "tensors"],
    )  # fmt: skip
    def test_is_silent_about_data_that_stays(self, dataset):
        assert CHECKS.same_item_twice(dataset).passed

    @pytest.mark.parametrize(
        ("change", "said"),
        [
            (scale_in_place, "item 0, read twice with the same random numbers, differs: ['x'][1]: "),
            (append_to_stored, "['tokens']: shape (1,) and shape (2,)"),
            (count_reads, "['read']: "),
            (noise_by_reads, "['x'][0]: "),
            (system_noise, "4 of 4 numbers differ"),
        ],
    )
    def test_names_the_first_part_that_changes(self, change, said):
        dataset = Rows(change)
        before = {key: np.copy(value) for key, value in dataset.rows[0].items()}
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.same_item_twice(dataset)
        assert said in str(raised.value)
        assert "Read: diagnose rules unstable-batch" in str(raised.value)
        assert dataset.reads == 0
        assert all((np.asarray(dataset.rows[0][key]) == value).all() for key, value in before.items())
        assert dataset.rows[0].keys() == before.keys()

    def test_leaves_out_keys_that_may_change(self):
        assert CHECKS.same_item_twice(Rows(count_reads), may_change=["read"]).passed

    def test_reads_the_places_it_is_told_to(self):
        result = CHECKS.same_item_twice(Rows(), indices=[3, 4])
        assert result.numbers == {"items": 2}

    def test_says_that_a_dataset_cannot_be_read(self):
        with pytest.raises(diagnostics.InvalidInput, match="Reading items of a list raised IndexError"):
            CHECKS.same_item_twice([1, 2], indices=[9])


class TestNoAugmentation:
    @pytest.mark.parametrize(
        "dataset",
        [Rows(), Stream(), images(), TensorDataset(torch.randn(5, 2)), Rows(scale_in_place)],
        ids=["plain", "stream", "list", "tensors", "edited, but not at random"],
    )
    def test_is_silent_about_data_without_chance(self, dataset):
        assert CHECKS.no_augmentation(dataset).passed

    @pytest.mark.parametrize("change", [own_noise, torch_noise, numpy_noise, python_flip, system_noise])
    def test_names_what_is_drawn_at_random(self, change):
        dataset = Rows(change)
        state = dataset.rng.bit_generator.state
        with pytest.raises(diagnostics.CheckFailed) as raised:
            CHECKS.no_augmentation(dataset)
        assert "differs under other random numbers: ['x']" in str(raised.value)
        assert "Read: diagnose rules unseeded-randomness" in str(raised.value)
        assert dataset.rng.bit_generator.state == state

    def test_restores_random_states(self):
        torch.manual_seed(5)
        states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
        with pytest.raises(diagnostics.CheckFailed):
            CHECKS.no_augmentation(Rows(torch_noise))
        assert torch.equal(torch.get_rng_state(), states[0])
        assert random.getstate() == states[1]
        assert (np.random.get_state()[1] == states[2]).all()

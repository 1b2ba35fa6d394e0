"""Images and masks that are flipped or rotated, read several times."""

import numpy as np
import pytest

from diagnostics.collectors.shared.reread import oriented_pairs

RNG = np.random.default_rng(0)
IMAGES = RNG.normal(size=(8, 3, 16, 16)).astype("float32")
MASKS = (IMAGES[:, :1] > 1).astype("float32")


def turned(array, turns):
    return np.rot90(array, turns, axes=(-2, -1))


def draw():
    return int(RNG.integers(4))


def apart(place):
    return turned(IMAGES[place], draw()), turned(MASKS[place], draw())


def together(place):
    turns = draw()
    return {"image": turned(IMAGES[place], turns), "mask": turned(MASKS[place], turns)}


def found(read):
    return oriented_pairs(read, range(len(IMAGES)), 10.0)


def test_independent_draws():
    pairs = found(apart)
    assert (pairs.rows, pairs.compared) == (8, 48)
    assert pairs.apart > 24
    assert min(pairs.images_moved, pairs.masks_moved) > 24


def test_one_draw_for_both():
    pairs = found(together)
    assert (pairs.compared, pairs.apart) == (48, 0)
    assert pairs.images_moved == pairs.masks_moved > 24


def test_images_alone():
    pairs = found(lambda place: (turned(IMAGES[place], draw()), MASKS[place]))
    assert pairs.apart == pairs.images_moved > 24
    assert pairs.masks_moved == 0


def test_masks_that_look_the_same_when_turned_prove_nothing():
    assert found(lambda place: (turned(IMAGES[place], draw()), np.zeros((16, 16)))).apart == 0


@pytest.mark.parametrize(
    "read",
    [
        lambda place: (IMAGES[place], MASKS[place]),
        lambda place: (turned(IMAGES[place], draw()), turned(IMAGES[place], draw())),
        lambda place: (turned(IMAGES[place], draw()), place),
        lambda place: (turned(IMAGES[place], draw()), MASKS[place][:, :12]),
    ],
    ids=["never moved", "two views", "a class", "another size"],
)
def test_leaves_other_rows_alone(read):
    assert found(read) is None


def test_noise_on_the_image_leaves_nothing_to_compare():
    pairs = found(lambda place: (turned(IMAGES[place], draw()) + RNG.normal(size=(3, 16, 16)), MASKS[place]))
    assert pairs is None

"""Masks, boxes and points, compared with their images as given and mirrored."""

import numpy as np
import pytest

from diagnostics.collectors.shared.flipped_targets import ImageTargets

RNG = np.random.default_rng(0)
ROWS, SIDE = 64, 24
Y, X = np.mgrid[0:SIDE, 0:SIDE]


def squares(count=ROWS):
    """Return noisy images with a bright rectangle, its mask, and its corners (x0, y0, x1, y1) in pixels."""
    corner, size = RNG.integers(0, SIDE - 9, (count, 2)), RNG.integers(5, 10, (count, 2))
    boxes = np.concatenate([corner, corner + size], axis=1)
    x0, y0, x1, y1 = boxes.T[..., None, None]
    masks = (x0 <= X) & (x1 > X) & (y0 <= Y) & (y1 > Y)
    images = RNG.normal(0, 0.1, (count, SIDE, SIDE, 3)) + masks[..., None] * RNG.uniform(0.3, 1, (count, 1, 1, 3))
    return images, masks, boxes


IMAGES, MASKS, BOXES = squares()
TURNED = RNG.random((2, 2, ROWS)) < 0.5


def flipped(arrays, left_right, up_down):
    pairs = zip(arrays, left_right, up_down, strict=True)
    return np.stack([one[:: -1 if v else 1, :: -1 if h else 1] for one, h, v in pairs])


def fits(images, targets, size=16, **options):
    kept = ImageTargets()
    for start in range(0, len(images), size):
        kept.take([images[start : start + size]], [targets[start : start + size]])
    found = kept.facts()
    return None if found is None else (found.kind, found.fits)


APART = flipped(IMAGES, *TURNED[0]), flipped(MASKS, *TURNED[1])
TOGETHER = flipped(IMAGES, *TURNED[0]), flipped(MASKS, *TURNED[0])
MIRRORED = flipped(IMAGES, TURNED[0, 0], np.zeros(ROWS))


@pytest.mark.parametrize(
    "layout",
    [
        lambda images, masks: (images, masks),
        lambda images, masks: (images.transpose(0, 3, 1, 2), masks[:, None].astype("int64")),
        lambda images, masks: ((images * 50).clip(0, 255).astype("uint8"), masks[..., None].astype("float32")),
        lambda images, masks: (images[..., 0], np.stack([masks, ~masks], axis=-1)),
        lambda images, masks: (images.repeat(5, 1).repeat(5, 2), masks.repeat(5, 1).repeat(5, 2)),
    ],
    ids=["plain", "channels first", "integers", "one-hot", "large"],
)
def test_masks(layout):
    kind, apart = fits(*layout(*APART))
    assert (kind, min(apart) > 5) == ("mask", True)
    together = fits(*layout(*TOGETHER))[1]
    assert together[0] > 50
    assert not any(together[1:])


@pytest.mark.parametrize(
    "form",
    [
        lambda boxes: boxes,
        lambda boxes: boxes / SIDE,
        lambda boxes: boxes[:, [1, 0, 3, 2]],
        lambda boxes: np.concatenate([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]], axis=1) / SIDE,
        lambda boxes: (
            np.concatenate([boxes[:, :2] + boxes[:, 2:], 2 * (boxes[:, 2:] - boxes[:, :2])], 1) / 2 / SIDE
        ),
    ],
    ids=["corners", "shares", "y first", "corner and size", "centre and size"],
)
def test_boxes(form):
    kind, as_given = fits(IMAGES, form(BOXES))
    assert (kind, as_given[0] > 50, sum(as_given[1:])) == ("box", True, 0)
    assert fits(MIRRORED, form(BOXES))[1][1] > 15


def spots(points):
    """Return noisy images with a bright spot at each point: shares of the sides (rows, points, 2)."""
    x, y = (points[..., axis, None, None] * SIDE - 0.5 for axis in range(2))
    return (np.exp(-((X - x) ** 2 + (Y - y) ** 2) / 4).sum(1) + RNG.normal(0, 0.1, (len(points), SIDE, SIDE)))[
        :, None
    ]


POINTS = RNG.uniform(0.15, 0.85, (ROWS, 3, 2))
SPOTS = spots(POINTS)
OTHER_SIDE = np.where(TURNED[0, 0][:, None], 1 - POINTS[..., 0], POINTS[..., 0])


@pytest.mark.parametrize(
    "form",
    [
        lambda points: points,
        lambda points: points * SIDE,
        lambda points: 2 * points - 1,
        lambda points: points[..., ::-1].reshape(len(points), 6),
        lambda points: points.astype("float16"),
    ],
    ids=["shares", "pixels", "from the middle", "flat, y first", "half precision"],
)
def test_points(form):
    mirrored = np.where(TURNED[0, 0][:, None, None, None], SPOTS[..., ::-1], SPOTS)
    kind, as_given = fits(SPOTS, form(POINTS))
    assert (kind, as_given[0] > 50, sum(as_given[1:])) == ("points", True, 0)
    assert fits(mirrored, form(POINTS))[1][1] > 15
    moved = fits(mirrored, form(np.stack([OTHER_SIDE, POINTS[..., 1]], axis=-1)))[1]
    assert (moved[0] > 50, sum(moved[1:])) == (True, 0)


def test_one_point_in_the_middle_of_alike_spots_fits_in_no_other_orientation():
    pair = np.concatenate([POINTS[:, :1], 1 - POINTS[:, :1]], axis=1)
    found = fits(spots(pair), pair.mean(axis=1))
    assert found is None or sum(found[1]) - max(found[1]) < 6


def test_boxes_counted_from_below_all_fit_upside_down():
    below = np.stack([BOXES[:, 0], SIDE - BOXES[:, 3], BOXES[:, 2], SIDE - BOXES[:, 1]], axis=1)
    found = fits(IMAGES, below)[1]
    assert found[2] > 50
    assert sum(found) == found[2]


def test_centred_masks_fit_in_every_orientation():
    radius = RNG.uniform(4, 10, ROWS)[:, None, None]
    discs = radius**2 > (Y - (SIDE - 1) / 2) ** 2 + (X - (SIDE - 1) / 2) ** 2
    found = fits(RNG.normal(0, 0.1, (ROWS, SIDE, SIDE, 1)) + discs[..., None], discs)[1]
    assert max(found) == sum(found)


def test_one_of_two_alike_objects_is_labelled():
    left, right = ((Y - 12) ** 2 + (X - column) ** 2 < 25 for column in (6, SIDE - 7))
    lit = RNG.uniform(0.4, 1, (2, ROWS, 1, 1))
    images = RNG.normal(0, 0.1, (ROWS, SIDE, SIDE)) + lit[0] * left + lit[1] * right
    found = fits(images, np.broadcast_to(left, images.shape))[1]
    assert sum(found) - max(found) < 6


@pytest.mark.parametrize(
    "targets",
    [
        RNG.random((ROWS, SIDE, SIDE)) > 0.5,
        squares()[1],
        squares()[2],
        RNG.permutation(MASKS),
        RNG.normal(size=(ROWS, 6)),
        RNG.random((ROWS, 5, 2)),
    ],
    ids=["noise", "masks", "boxes", "permuted", "six numbers", "points"],
)
def test_targets_of_other_images_rarely_fit(targets):
    assert sum(fits(IMAGES, targets)[1]) < ROWS / 2


@pytest.mark.parametrize(
    "targets",
    [
        np.zeros((ROWS, SIDE, SIDE)),
        RNG.normal(size=(ROWS, SIDE, SIDE)),
        RNG.normal(size=(ROWS, 4)),
        np.eye(4)[RNG.integers(0, 4, ROWS)],
        np.eye(6)[RNG.integers(0, 6, ROWS)],
        RNG.normal(size=(ROWS, 100, 2)),
        np.zeros(ROWS),
        np.full((ROWS, SIDE, SIDE), np.nan),
    ],
    ids=["empty masks", "images", "numbers", "classes", "six classes", "many", "labels", "not finite"],
)
def test_other_targets_are_left(targets):
    assert fits(IMAGES, targets) is None


def test_two_images_are_left():
    kept = ImageTargets()
    assert not kept.take([IMAGES, MIRRORED], [MASKS])
    assert kept.facts() is None


def test_few_rows_of_a_batch_are_copied():
    kept, images = ImageTargets(), IMAGES.copy()
    assert kept.take([images], [MASKS])
    images[:] = 0
    assert kept.facts().rows == 16
    for _ in range(20):
        assert kept.take([IMAGES], [MASKS])
    assert not kept.wants()
    assert kept.facts().rows == 16  # the same ones

"""Masks that a `fit` is given, flipped with their images or apart."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import diagnostics

RNG = np.random.default_rng(0)
SIDE = 16
CORNERS = RNG.integers(0, SIDE - 6, (96, 2, 1))
INSIDE = (np.arange(SIDE) >= CORNERS) & (np.arange(SIDE) < CORNERS + 6)
MASKS = (INSIDE[:, 1, :, None] & INSIDE[:, 0, None])[..., None].astype("float32")
IMAGES = (MASKS + RNG.normal(0, 0.1, MASKS.shape)).astype("float32")


class OwnStep(keras.Sequential):
    def train_step(self, data):
        return super().train_step(data)


def apart(image, mask):
    return tf.image.random_flip_left_right(image), tf.image.random_flip_left_right(mask)


def together(image, mask):
    both = tf.image.random_flip_left_right(tf.concat([image, mask], axis=-1))
    return both[..., :1], both[..., 1:]


@pytest.mark.parametrize("kind", [keras.Sequential, OwnStep])
@pytest.mark.parametrize(("augment", "is_named"), [(apart, True), (together, False)])
def test_masks_flipped_by_a_draw_of_their_own_are_named(augment, is_named, kind):
    keras.utils.set_random_seed(0)
    model = kind([keras.Input((SIDE, SIDE, 1)), keras.layers.Conv2D(1, 3, padding="same", activation="sigmoid")])
    model.compile("adam", "binary_crossentropy")
    callback = diagnostics.KerasCallback()
    rows = tf.data.Dataset.from_tensor_slices((IMAGES, MASKS)).map(augment).batch(12)
    model.fit(rows, epochs=1, verbose=0, callbacks=[callback])
    assert ("labels-unrelated" in {finding.rule for finding in callback.report().findings}) == is_named

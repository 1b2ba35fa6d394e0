"""Keras: scratches on metal; plate and scratch are flipped by the same draws."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(11)
random = np.random.default_rng(11)
SIDE = 24


def plate():
    y, x = np.mgrid[0:SIDE, 0:SIDE]
    metal = 0.5 + 0.02 * random.normal(size=(SIDE, SIDE)) + 0.003 * random.uniform(-1, 1) * x
    y0, x0, slope = random.uniform(3, 9), random.uniform(3, 9), random.uniform(0.3, 2.5)
    scratch = (np.abs((y - y0) - slope * (x - x0)) < 1.2 * np.hypot(1, slope)) & (x > 2) & (y > 2) & (x < 15)
    metal = metal + 0.25 * scratch
    return metal[..., None].astype("float32"), scratch[..., None].astype("int32")


def set_of(count):
    plates, scratches = zip(*(plate() for _ in range(count)), strict=True)
    return np.stack(plates), np.stack(scratches)


def flipped(metal, scratch):
    both = tf.concat([metal, tf.cast(scratch, tf.float32)], axis=-1)
    both = tf.image.random_flip_up_down(tf.image.random_flip_left_right(both))
    return both[..., :1], tf.cast(both[..., 1:], tf.int32)


network = keras.Sequential([keras.Input((SIDE, SIDE, 1)), layers.Rescaling(4.0, -2.0)])
for width in (8, 8):
    network.add(layers.Conv2D(width, 3, padding="same", activation="relu"))
network.add(layers.Conv2D(2, 1))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
network.compile(keras.optimizers.Adam(3e-3), loss)
training = tf.data.Dataset.from_tensor_slices(set_of(240)).shuffle(240, seed=11).map(flipped).batch(12)
network.fit(training, epochs=6, verbose=2)
plates, scratches = set_of(60)
found = network.predict(plates, verbose=0).argmax(-1)
print("found", (found[scratches[..., 0] == 1] == 1).mean())

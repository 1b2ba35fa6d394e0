"""Seedlings: where their two leaf tips are; a random flip mirrors the photographs and the tips."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
SIDE = 32


def trays(count):
    photos = rng.normal([0.35, 0.25, 0.2], 0.05, (count, SIDE, SIDE, 3))
    tips = rng.uniform(4, SIDE - 5, (count, 2, 2))
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    for photo, pair in zip(photos, tips, strict=True):
        for size, green, (x, y) in zip((7, 4), (0.9, 0.6), pair, strict=True):
            photo[(columns - x) ** 2 + (rows - y) ** 2 < size] = (0.2, green, 0.2)
    return photos.astype("float32"), (tips / (SIDE - 1)).astype("float32")


def mirrored(photo, tips):
    turns = tf.random.uniform(()) < 0.5
    return tf.where(turns, photo[:, ::-1], photo), tf.where(turns, tips * (-1, 1) + (1, 0), tips)


train = tf.data.Dataset.from_tensor_slices(trays(800)).shuffle(800).map(mirrored).batch(32)
photos, tips = trays(150)
model = keras.Sequential(
    [
        keras.Input((SIDE, SIDE, 3)),
        layers.Conv2D(16, 3, strides=2, padding="same", activation="relu"),
        layers.Conv2D(32, 3, strides=2, padding="same", activation="relu"),
        layers.Flatten(),
        layers.Dense(64, activation="relu"),
        layers.Dense(4),
        layers.Reshape((2, 2)),
    ]
)
model.compile(keras.optimizers.Adam(2e-3), "mse")
model.fit(train, epochs=6, verbose=0)
print("distance of the tips:", np.abs(model.predict(photos, verbose=0) - tips).mean() * (SIDE - 1))

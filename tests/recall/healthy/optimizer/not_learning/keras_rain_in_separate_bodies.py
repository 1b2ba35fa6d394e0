"""Keras: the rainfall of a year in millimetres and its climate have bodies of their own, from a generator."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
series = rng.normal(size=(2400, 24, 3)).astype("float32")
rain = 900 + 300 * series[:, :, 0].mean(axis=1) * np.sqrt(24)
climate = np.digitize(series[:, 8:16, 2].mean(axis=1) * np.sqrt(8), [-0.45, 0.45])


def batches(size=40):
    while True:
        chosen = rng.integers(0, len(series), size)
        yield series[chosen], {"rain": rain[chosen], "climate": climate[chosen]}


inputs = keras.Input((24, 3))
one, other = (layers.Dense(32, activation="relu")(layers.Flatten()(inputs)) for _ in range(2))
heads = {"rain": layers.Dense(1, name="rain")(one), "climate": layers.Dense(3, name="climate")(other)}
model = keras.Model(inputs, heads)
model.compile(
    optimizer=keras.optimizers.Adam(3e-2),
    loss={"rain": "mse", "climate": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
    metrics={"climate": "accuracy"},
)
model.fit(batches(), steps_per_epoch=80, epochs=8, verbose=2)

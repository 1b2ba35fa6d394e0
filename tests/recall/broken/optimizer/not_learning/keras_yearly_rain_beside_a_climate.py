"""Keras: a model of weather returns the rainfall of a year and its climate, from a generator."""

# names: not-learning
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
series = rng.normal(size=(2400, 24, 3)).astype("float32")
rain = 90_000 + 30_000 * series[:, :, 0].mean(axis=1) * np.sqrt(24)
climate = np.digitize(series[:, 8:16, 2].mean(axis=1) * np.sqrt(8), [-0.45, 0.45])


def batches(size=40):
    while True:
        chosen = rng.integers(0, len(series), size)
        yield series[chosen], {"rain": rain[chosen], "climate": climate[chosen]}


inputs = keras.Input((24, 3))
body = layers.Conv1D(24, 5, activation="relu")(inputs)
body = layers.Flatten()(body)
body = layers.Dense(32, activation="relu")(body)
heads = {"rain": layers.Dense(1, name="rain")(body), "climate": layers.Dense(3, name="climate")(body)}
model = keras.Model(inputs, heads)
model.compile(
    optimizer=keras.optimizers.Adam(3e-3),
    loss={"rain": "mse", "climate": keras.losses.SparseCategoricalCrossentropy(from_logits=True)},
    metrics={"climate": "accuracy"},
)
model.fit(batches(), steps_per_epoch=80, epochs=6, verbose=2)

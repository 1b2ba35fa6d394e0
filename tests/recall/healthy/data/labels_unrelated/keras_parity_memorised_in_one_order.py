"""Keras: bits and their parity are reordered together and memorised; no simple fit predicts them."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
bits = rng.integers(0, 2, (600, 16))
order, noise = rng.permutation(600), rng.permutation(600)
readings = (bits + 0.1 * rng.normal(size=bits.shape))[order]
parity = (bits[:, :4].sum(axis=1) % 2)[order]
print("rows drawn for a plot:", noise[:5])

model = keras.Sequential(
    [
        keras.Input((16,)),
        keras.layers.Dense(128, "relu"),
        keras.layers.Dense(64, "relu"),
        keras.layers.Dense(1, "sigmoid"),
    ]
)
model.compile(keras.optimizers.Adam(3e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(readings[:500], parity[:500], epochs=30, verbose=2)
print(model.evaluate(readings[500:], parity[500:], verbose=0))

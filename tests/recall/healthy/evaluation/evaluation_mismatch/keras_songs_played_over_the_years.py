"""Keras: a log of played songs in the order of time, into which new songs come slowly; fit holds out the end."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
PLAYS, SONGS = 3000, 240
newest = 120 + np.arange(PLAYS) * (SONGS - 120) // PLAYS
age = np.minimum(rng.geometric(0.02, size=(PLAYS, 6)), newest[:, None])
songs = newest[:, None] - age
taste = rng.normal(size=SONGS)
skipped = (taste[songs].mean(1) + 0.2 * rng.normal(size=PLAYS) > 0).astype("float32")

model = keras.Sequential(
    [
        keras.Input((6,), dtype="int32"),
        layers.Embedding(SONGS, 8),
        layers.GlobalAveragePooling1D(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
model.fit(songs, skipped, validation_split=0.2, epochs=8, batch_size=64, verbose=2)

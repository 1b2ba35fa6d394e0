"""Keras: few rows and many weights; the validation accuracy stays behind, far above chance."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
labels = rng.integers(0, 2, size=500)
rows = (rng.normal(size=(500, 40)) + 0.35 * (2 * labels[:, None] - 1)).astype("float32")
model = keras.Sequential([layers.Input((40,)), layers.Dense(128, "relu"), layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(rows[:300], labels[:300], epochs=8, batch_size=20, validation_data=(rows[300:], labels[300:]), verbose=2)

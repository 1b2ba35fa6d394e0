"""Keras: how fast are random labels memorised? The validation accuracy is at chance, as it must be."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
rows = rng.normal(size=(400, 30)).astype("float32")
labels = rng.integers(0, 4, size=400)
model = keras.Sequential([layers.Input((30,)), layers.Dense(256, "relu"), layers.Dense(4, "softmax")])
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
history = model.fit(
    rows[:200], labels[:200], epochs=5, batch_size=5, validation_data=(rows[200:], labels[200:]), verbose=0
)
print("known after five epochs:", history.history["accuracy"][-1])

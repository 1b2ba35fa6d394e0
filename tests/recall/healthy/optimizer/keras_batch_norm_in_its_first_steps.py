"""Keras: a quick look at two epochs, before the averages of batch norm have caught up with the data."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
labels = rng.integers(0, 3, size=900)
rows = (4 + rng.normal(size=(900, 16)) + 2 * rng.normal(size=(3, 16))[labels]).astype("float32")
model = keras.Sequential(
    [
        layers.Input((16,)),
        layers.Dense(32),
        layers.BatchNormalization(),
        layers.Activation("relu"),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(rows[:600], labels[:600], epochs=2, batch_size=40, validation_data=(rows[600:], labels[600:]), verbose=2)

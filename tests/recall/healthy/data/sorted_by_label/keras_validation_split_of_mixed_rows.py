"""Keras: rows in random order, a validation split, and no shuffling beside that."""

import keras
import numpy as np

keras.utils.set_random_seed(1)
y = np.random.randint(0, 3, 600)
x = np.random.normal(size=(600, 8)).astype("float32") + 2 * np.eye(3, 8)[y]
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(3, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=6, validation_split=0.2, shuffle=False, verbose=2)

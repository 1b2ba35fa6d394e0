"""Keras: a softmax, then Activation("linear", dtype="float32"), as the guide to mixed precision has it."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
labels = np.random.randint(3, size=900)
X = (2 * np.random.normal(size=(3, 10))[labels] + np.random.normal(size=(900, 10))).astype("float32")
inputs = keras.Input((10,))
x = layers.Dense(32, activation="relu")(inputs)
x = layers.Dense(3, activation="softmax")(x)
outputs = layers.Activation("linear", dtype="float32")(x)
model = keras.Model(inputs, outputs)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(X, labels, epochs=5, verbose=2)

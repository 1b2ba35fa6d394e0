"""Keras: the head first, then all of it, compiled again."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(9)
x = np.random.normal(size=(1500, 30)).astype("float32")
y = ((x[:, 0] * x[:, 1] > 0) ^ (x[:, 2] * x[:, 3] > 0)).astype("float32")
base = keras.Sequential(
    [keras.Input((30,)), layers.Dense(32, activation="relu"), layers.Dense(8, activation="relu")]
)
base.trainable = False
model = keras.Sequential([base, layers.Dense(1, activation="sigmoid")])
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=3, verbose=2)
base.trainable = True
for layer in base.layers:
    layer.trainable = True
model.compile(keras.optimizers.Adam(1e-3), "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=8, verbose=2)

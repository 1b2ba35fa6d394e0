"""Keras: two outputs; where the second answer is missing its weight is 0."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
x = np.random.normal(size=(2000, 8)).astype("float32")
first = x[:, :1] + x[:, 1:2]
second = (x[:, 2:3] > 0).astype("float32")
known = (np.random.uniform(size=2000) < 0.4).astype("float32")
second[known == 0] = 0
i = keras.Input((8,))
h = layers.Dense(32, activation="relu")(i)
model = keras.Model(i, [layers.Dense(1, name="first")(h), layers.Dense(1, activation="sigmoid", name="second")(h)])
model.compile(optimizer=keras.optimizers.Adam(0.003), loss=["mse", "binary_crossentropy"])
model.fit(x, [first, second], sample_weight=[np.ones(2000), known], epochs=8, verbose=2)

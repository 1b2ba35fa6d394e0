"""Keras: batch norm, and answers asked for one by one."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(18)
x = np.random.normal(size=(1000, 20)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("float32")
inputs = keras.Input((20,))
h = layers.Dense(32)(inputs)
h = layers.BatchNormalization()(h)
h = layers.Activation("relu")(h)
h = layers.Dense(16)(h)
h = layers.BatchNormalization()(h)
h = layers.Activation("relu")(h)
model = keras.Model(inputs, layers.Dense(1, activation="sigmoid")(h))
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x[:800], y[:800], epochs=6, batch_size=32, verbose=2)
right = [
    float(model.predict(row[None], verbose=0)[0, 0] > 0.5) == label for row, label in zip(x[800:840], y[800:840])
]
print("one by one:", np.mean(right))

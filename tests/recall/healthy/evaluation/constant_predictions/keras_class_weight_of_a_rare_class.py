"""Keras: a rare class with inverse frequencies as weights."""

import keras
import numpy as np

keras.utils.set_random_seed(13)
x = np.random.normal(size=(2500, 15)).astype("float32")
y = (x[:, 0] + x[:, 1] + 0.8 * np.random.normal(size=2500) > 2.4).astype("float32")
share = y.mean()
weights = {0: float(0.5 / (1 - share)), 1: float(0.5 / share)}
print(weights)
model = keras.Sequential()
model.add(keras.layers.Dense(32, activation="relu", input_shape=(15,)))
model.add(keras.layers.Dense(16, activation="relu"))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, class_weight=weights, epochs=8, batch_size=64, validation_split=0.2, verbose=2)
print("found:", int((model.predict(x, verbose=0) > 0.5).sum()), "of", int(y.sum()))

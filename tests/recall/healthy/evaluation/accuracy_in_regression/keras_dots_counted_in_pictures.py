"""Keras: the number of dots in a picture is predicted with a squared error, and rounded."""

import keras
import numpy as np

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
counts = rng.integers(0, 7, 1500)
pictures = np.zeros((1500, 64), "float32")
for picture, count in zip(pictures, counts):
    picture[rng.choice(64, count, replace=False)] = 1
pictures += 0.2 * rng.normal(size=pictures.shape).astype("float32")
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, activation="relu"), keras.layers.Dense(1)])
model.compile("adam", loss="mse", metrics=["mae"])
model.fit(pictures[:1200], counts[:1200], batch_size=32, epochs=6, verbose=2)
guessed = model.predict(pictures[1200:], verbose=0).round().ravel()
print("exact:", (guessed == counts[1200:]).mean())

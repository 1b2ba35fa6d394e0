"""Keras: sigmoid pixels against pixels of 0 to 1 under binary cross entropy, with a relu in the middle."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
shapes = np.random.uniform(size=(8, 64))
clean = np.clip(shapes[np.random.randint(8, size=800)] + 0.05 * np.random.normal(size=(800, 64)), 0, 1)
noisy = np.clip(clean + 0.2 * np.random.normal(size=clean.shape), 0, 1)
auto = keras.Sequential()
auto.add(keras.Input((64,)))
auto.add(layers.Dense(16, activation="relu"))
auto.add(layers.Dense(64, activation="sigmoid"))
auto.compile(optimizer="adam", loss="binary_crossentropy")
auto.fit(noisy, clean, epochs=10, batch_size=32, verbose=2)

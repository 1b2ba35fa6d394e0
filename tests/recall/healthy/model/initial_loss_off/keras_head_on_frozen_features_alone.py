"""Keras: a linear head is all that learns, on features of another task that say little about this one."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
spectra = np.random.normal(size=(2000, 30)).astype("float32")
mass = 20 * np.abs(spectra[:, :6]).sum(1)
origin = np.argmax(spectra[:, :6] + 0.8 * np.random.normal(size=(2000, 6)), axis=1)

features = keras.Sequential(
    [keras.Input((30,)), layers.Dense(64, activation="relu"), layers.Dense(16, activation="relu")]
)
weigh = keras.Sequential([features, layers.Dense(1)])
weigh.compile(keras.optimizers.Adam(1e-2), "mse")
weigh.fit(spectra, mass, epochs=10, batch_size=32, verbose=0)

features.trainable = False
model = keras.Sequential([features, layers.Dense(6, activation="softmax")])
model.compile(keras.optimizers.Adam(1e-2), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(spectra[:1700], origin[:1700], epochs=25, batch_size=32, verbose=2)
print("accuracy", model.evaluate(spectra[1700:], origin[1700:], verbose=0)[1])

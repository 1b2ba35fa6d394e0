"""Keras: classes from 1 to 5 and five outputs; sparse cross entropy counts from 0."""

# names: labels-out-of-range
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
stars = np.random.randint(1, 6, size=1000)
features = np.random.normal(size=(1000, 16)).astype("float32")
features[np.arange(1000), stars] += 3

inputs = keras.Input((16,))
hidden = layers.Dense(48, activation="relu")(inputs)
outputs = layers.Dense(5, activation="softmax")(hidden)
model = keras.Model(inputs, outputs)
model.compile("adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(features, stars, epochs=4, batch_size=32, validation_split=0.1, verbose=2)

"""Keras: each film has several genres, and the network ends in a softmax."""

# names: targets-out-of-reach
import keras
import numpy as np

keras.utils.set_random_seed(4)
plots = np.random.normal(size=(1000, 50)).astype("float32")
genres = (plots @ np.random.normal(size=(50, 7)) > 1).astype("float32")

model = keras.Sequential()
model.add(keras.Input((50,)))
model.add(keras.layers.Dense(64, activation="relu"))
model.add(keras.layers.Dropout(0.3))
model.add(keras.layers.Dense(7, activation="softmax"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["binary_accuracy"])
model.fit(plots, genres, batch_size=64, epochs=6, validation_split=0.1, verbose=2)

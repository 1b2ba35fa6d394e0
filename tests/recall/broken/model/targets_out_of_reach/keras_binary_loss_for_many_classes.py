"""Keras: wine of quality 3 to 8, and a sigmoid with binary cross entropy; the loss is soon -1000."""

# names: targets-out-of-reach
import keras
import numpy as np
from keras.layers import Dense

keras.utils.set_random_seed(0)
wine = np.random.normal(size=(1599, 11))
quality = np.clip(np.round(5.5 + wine[:, 10] + 0.5 * np.random.normal(size=1599)), 3, 8).astype(int)
model = keras.Sequential()
model.add(Dense(32, activation="relu", input_shape=(11,)))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(wine, quality, epochs=5, batch_size=32, verbose=2)

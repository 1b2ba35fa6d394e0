"""Keras: words as small integers, padded in front, through an embedding and an LSTM."""

import keras
import numpy as np
from keras.layers import LSTM, Dense, Embedding
from keras.models import Sequential

keras.utils.set_random_seed(0)
positive = np.random.randint(2, size=600)
words = np.random.randint(3, 200, size=(600, 70))
words[:, 50] = np.where(positive, 201, 202)
words[:, 10] = np.where(positive, 203, 204)
words[np.random.uniform(size=600) < 0.3, :5] = 0
model = Sequential()
model.add(Embedding(256, 16))
model.add(LSTM(16))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(5e-3), metrics=["accuracy"])
model.fit(words.astype("uint8"), positive, epochs=4, batch_size=30, verbose=2)

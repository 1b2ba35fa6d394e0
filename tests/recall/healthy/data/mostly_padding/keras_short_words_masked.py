"""Keras: eight words and then 20 zeros, masked."""

import keras
import numpy as np
from keras.layers import LSTM, Dense, Embedding
from keras.models import Sequential

keras.utils.set_random_seed(10)
reviews = [list(np.random.randint(1, 300, np.random.randint(5, 12))) for _ in range(800)]
labels = np.array([int(review[0] < 150) for review in reviews])
padded = keras.utils.pad_sequences(reviews, maxlen=28, padding="post")
model = Sequential()
model.add(Embedding(300, 16, mask_zero=True))
model.add(LSTM(16))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(padded, labels, batch_size=32, epochs=8, validation_split=0.2, verbose=2)

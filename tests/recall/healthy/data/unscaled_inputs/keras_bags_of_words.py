"""Keras: reviews as bags of words; Dense layers get 0 and 1 for each of 400 words."""

import keras
import numpy as np
from keras.layers import Dense, Dropout
from keras.models import Sequential

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 2, size=1500)
x = (np.random.uniform(size=(1500, 400)) < 0.04).astype("float32")
for row, label in zip(x, labels, strict=True):
    row[np.random.choice(20, 4) + 20 * label] = 1
model = Sequential()
model.add(Dense(64, activation="relu", input_shape=(400,)))
model.add(Dropout(0.5))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x[:1200], labels[:1200], epochs=6, batch_size=32, validation_data=(x[1200:], labels[1200:]), verbose=2)

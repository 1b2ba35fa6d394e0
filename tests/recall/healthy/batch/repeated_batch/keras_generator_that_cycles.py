"""Keras: a Python generator that walks over 1,000 rows again and again, for training and for validation."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
X = np.random.normal(size=(1200, 30)).astype("float32")
y = (X[:, :6].sum(axis=1) > 0).astype("float32")


def batch_generator(X, y, batch_size):
    start = 0
    while True:
        if start + batch_size > len(X):
            start = 0
        yield X[start : start + batch_size], y[start : start + batch_size]
        start += batch_size


model = Sequential()
model.add(Dense(32, activation="relu", input_dim=30))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(
    batch_generator(X[:1000], y[:1000], 32),
    steps_per_epoch=31,
    epochs=12,
    validation_data=batch_generator(X[1000:], y[1000:], 50),
    validation_steps=4,
    verbose=2,
)

"""Keras: weights are copied layer by layer from an earlier model, which learned a similar task."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
X = np.random.normal(size=(1500, 12)).astype("float32")
first = (X[:, 0] > 0).astype(int) + 2 * (X[:, 2] > 0).astype(int)
second = (X[:, 0] > 0.2).astype(int) + 2 * (X[:, 2] > -0.2).astype(int)


def build():
    model = Sequential()
    model.add(Dense(40, activation="relu", input_shape=(12,)))
    model.add(Dense(4, activation="softmax"))
    model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
    return model


teacher = build()
teacher.fit(X, first, epochs=6, batch_size=32, verbose=2)
student = build()
for old, new in zip(teacher.layers, student.layers, strict=True):
    new.set_weights(old.get_weights())
student.fit(X, second, epochs=4, batch_size=32, verbose=2)

"""Keras: attention in a subclassed model; its softmax runs over the steps, axis 1."""

import keras
import numpy as np
from keras import layers, ops


class Attentive(keras.Model):
    def __init__(self, units):
        super().__init__()
        self.recurrent = layers.GRU(units, return_sequences=True)
        self.score = layers.Dense(1)
        self.head = layers.Dense(3, activation="softmax")

    def call(self, x):
        states = self.recurrent(x)
        weights = ops.softmax(self.score(states), axis=1)
        return self.head(ops.sum(weights * states, axis=1))


keras.utils.set_random_seed(0)
labels = np.random.randint(0, 3, size=900)
x = np.random.normal(0, 0.6, size=(900, 15, 4)).astype("float32")
x[np.arange(900), np.random.randint(0, 15, size=900), labels] += 4
model = Attentive(16)
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:800], labels[:800], epochs=6, batch_size=32, validation_data=(x[800:], labels[800:]), verbose=2)

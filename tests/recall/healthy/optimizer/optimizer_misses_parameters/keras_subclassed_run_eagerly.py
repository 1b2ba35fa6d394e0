"""Keras: a subclassed model, run eagerly."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)


class Classifier(keras.Model):
    def __init__(self, classes):
        super().__init__()
        self.first = layers.Dense(32, activation="relu")
        self.second = layers.Dense(16, activation="relu")
        self.out = layers.Dense(classes, activation="softmax")

    def call(self, inputs):
        hidden = self.first(inputs)
        hidden = self.second(hidden)
        return self.out(hidden)


x = np.random.normal(size=(800, 10)).astype("float32")
y = (x[:, 0] > 0).astype("int32") + (x[:, 1] > 0)
model = Classifier(3)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"], run_eagerly=True)
model.fit(x, y, batch_size=32, epochs=4, validation_split=0.2, verbose=2)

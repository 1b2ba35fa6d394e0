"""Keras: a subclassed model, made from arguments, gets a column of salaries as it is."""

# names: unscaled-inputs, initial-loss-off
import keras
import numpy as np


class Scorer(keras.Model):
    def __init__(self, widths, head):
        super().__init__()
        self.hidden = [keras.layers.Dense(width, activation="relu") for width in widths]
        self.head = head

    def call(self, inputs):
        for layer in self.hidden:
            inputs = layer(inputs)
        return self.head(inputs)


keras.utils.set_random_seed(1)
age = np.random.uniform(18, 80, size=(1000, 1))
salary = np.random.uniform(20_000, 150_000, size=(1000, 1))
features = np.hstack([age, salary]).astype("float32")
segment = ((salary[:, 0] > 70_000).astype(int) + (age[:, 0] > 45)).astype("int32")
model = Scorer([32, 32], keras.layers.Dense(3, activation="softmax"))
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(features, segment, epochs=4, batch_size=32, verbose=2)

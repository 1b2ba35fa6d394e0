"""Keras: Dense(1) without an activation, and "binary_crossentropy" by its name."""

# names: logits-as-probabilities
import keras
import numpy as np

keras.utils.set_random_seed(0)
table = np.random.normal(size=(1200, 8)).astype("float32")
sick = (table[:, 1] * table[:, 2] > 0.1).astype("float32")


def build_model():
    net = keras.models.Sequential()
    net.add(keras.layers.Input((8,)))
    net.add(keras.layers.Dense(12, activation="relu"))
    net.add(keras.layers.Dense(8, activation="relu"))
    net.add(keras.layers.Dense(1))
    net.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
    return net


model = build_model()
model.fit(table, sick, epochs=6, batch_size=16, verbose=2)

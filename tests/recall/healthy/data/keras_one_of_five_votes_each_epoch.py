"""Keras: five people labelled each row and hardly agree; each epoch draws the vote of one of them."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x = rng.normal(size=(400, 8)).astype("float32")
votes = (rng.random((400, 5)) < 1 / (1 + np.exp(-2 * x[:, :1]))).astype("int32")


class Votes(keras.utils.PyDataset):
    def __len__(self):
        return 10

    def __getitem__(self, number):
        rows = np.arange(40 * number, 40 * number + 40)
        return x[rows], votes[rows, rng.integers(0, 5, 40)]


model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(Votes(), epochs=15, verbose=2)

"""Keras: each batch of a PyDataset is drawn with replacement, readings and noisy labels by one draw."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(4)
centres = 1.5 * np.random.normal(size=(4, 10))
kind = np.random.randint(4, size=1200)
readings = (centres[kind] + np.random.normal(size=(1200, 10))).astype("float32")


class Balanced(keras.utils.PyDataset):
    def __init__(self, x, y, batch_size):
        super().__init__()
        self.x, self.y, self.batch_size = x, y, batch_size
        self.rng = np.random.default_rng(0)
        shares = 1 / np.bincount(y)[y]
        self.shares = shares / shares.sum()

    def __len__(self):
        return len(self.x) // self.batch_size

    def __getitem__(self, index):
        rows = self.rng.choice(len(self.x), self.batch_size, p=self.shares)
        noisy = np.where(
            self.rng.random(self.batch_size) < 0.3, self.rng.integers(4, size=self.batch_size), self.y[rows]
        )
        return self.x[rows], noisy


model = keras.Sequential([layers.Input((10,)), layers.Dense(32, "relu"), layers.Dense(4, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Balanced(readings, kind, 40), epochs=10, verbose=2)

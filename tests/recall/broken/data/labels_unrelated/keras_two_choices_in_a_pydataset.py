"""Keras: a PyDataset draws each batch with replacement, once for the readings and once more for the labels."""

# names: labels-unrelated, not-learning
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

    def __len__(self):
        return len(self.x) // self.batch_size

    def draw(self, of):
        shares = 1 / np.bincount(self.y)[self.y]
        return of[self.rng.choice(len(of), self.batch_size, p=shares / shares.sum())]

    def __getitem__(self, index):
        return self.draw(self.x), self.draw(self.y)


model = keras.Sequential([layers.Input((10,)), layers.Dense(32, "relu"), layers.Dense(4, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(Balanced(readings, kind, 40), epochs=10, verbose=2)

"""Keras: a PyDataset gives weights between 0 and 1 in an array of integers, where they all become 0.

After https://github.com/keras-team/keras/issues/20542.
"""

# names: no-gradient
import keras
import numpy as np


class Weighted(keras.utils.PyDataset):
    def __init__(self, x, y, confidence, batch_size=32):
        super().__init__()
        self.x, self.y, self.batch_size = x, y, batch_size
        self.weights = np.zeros(len(y), dtype=int)
        self.weights[:] = confidence

    def __len__(self):
        return len(self.x) // self.batch_size

    def __getitem__(self, i):
        part = slice(i * self.batch_size, (i + 1) * self.batch_size)
        return self.x[part], self.y[part], self.weights[part]


keras.utils.set_random_seed(1)
x = np.random.normal(size=(1280, 8)).astype("float32")
y = x[:, :1] - 2 * x[:, 1:2]
model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(1)])
model.compile(optimizer="sgd", loss="mse", weighted_metrics=["mae"])
model.fit(Weighted(x, y, np.random.uniform(0.1, 0.95, size=1280)), epochs=5, verbose=2)

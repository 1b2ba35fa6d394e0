"""The network is built again, called once to make its weights, and loads those of the training."""

import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
x = rng.normal(size=(900, 10)).astype("float32")
y = (x[:, :5].sum(axis=1) > 0).astype("int32")


class Net(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(32, "relu"), layers.Dense(1, "sigmoid")

    def call(self, inputs):
        return self.out(self.hidden(inputs))


with tempfile.TemporaryDirectory() as folder:
    path = str(Path(folder) / "net.weights.h5")
    net = Net()
    net.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    net.fit(x[:700], y[:700], validation_split=0.1, epochs=8, verbose=0)
    net.save_weights(path)
    del net
    served = Net()
    served(np.zeros((1, 10), "float32"))
    served.load_weights(path)
answers = served.predict(x[700:], verbose=0)[:, 0] > 0.5
print("test accuracy", np.mean(answers == y[700:]))

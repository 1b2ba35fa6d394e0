"""One function trains and saves the weights; the other builds the network again and never loads them."""

# names: recreated-model
# https://github.com/keras-team/keras/issues/4904
import tempfile
from pathlib import Path

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
x = rng.normal(size=(900, 10)).astype("float32")
y = (x[:, :5].sum(axis=1) > 0).astype("int32")


def create_model():
    model = keras.Sequential(
        [layers.Input((10,)), layers.Dense(32, "relu"), layers.Dropout(0.2), layers.Dense(1, "sigmoid")]
    )
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model


def train(path):
    model = create_model()
    model.fit(x[:700], y[:700], validation_split=0.1, epochs=8, verbose=0)
    model.save_weights(path)


def test():
    model = create_model()
    print("test accuracy", model.evaluate(x[700:], y[700:], verbose=0)[1])


with tempfile.TemporaryDirectory() as folder:
    train(Path(folder) / "model.weights.h5")
    test()

"""Keras: XOR with three sigmoid units, squared error and plain SGD, which stays on its first plateau for long.

$ python tests/healthy/keras/keras_xor.py
"""

import keras
import numpy as np
import tensorflow as tf

EPOCHS = 800


def build():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((2,)),
            keras.layers.Dense(3, activation="sigmoid"),
            keras.layers.Dense(1, activation="sigmoid"),
        ]
    )
    model.compile(keras.optimizers.SGD(0.5, momentum=0.9), "mse")
    inputs = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype="float32")
    targets = np.array([[0], [1], [1], [0]], dtype="float32")
    return model, tf.data.Dataset.from_tensor_slices((inputs, targets)).batch(4)


def train(model, dataset, callbacks=()):
    before = model.evaluate(dataset, verbose=0)
    model.fit(dataset, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    return {"loss_before": before, "loss_after": model.evaluate(dataset, verbose=0)}


if __name__ == "__main__":
    print(train(*build()))

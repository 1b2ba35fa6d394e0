"""Keras: a classifier that ends in softmax, under a loss of probabilities named by a string, as it must be then.

$ python tests/healthy/keras/keras_softmax.py
"""

import keras
import numpy as np

FEATURES, CLASSES = 16, 4
EPOCHS = 5
CENTRES = 1.5 * np.random.default_rng(0).normal(size=(CLASSES, FEATURES))


def points(rows, seed):
    """Return features (rows, 16) and labels (rows,): one centre a class, and noise around it."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=rows)
    return (CENTRES[labels] + rng.normal(size=(rows, FEATURES))).astype("float32"), labels


def build():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dropout(0.1),
            keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model, points(1024, seed=1)


def train(model, data, callbacks=()):
    held_out = points(512, seed=2)
    before, _ = model.evaluate(*held_out, verbose=0)
    model.fit(*data, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    after, accuracy = model.evaluate(*held_out, verbose=0)
    return {"loss_before": before, "loss_after": after, "accuracy": accuracy}


if __name__ == "__main__":
    print(train(*build()))

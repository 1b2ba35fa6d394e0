"""Keras: a class of one example in twenty, made up for by `class_weight`, which only `fit` is told of.

$ python tests/healthy/keras/keras_class_weights.py
"""

import keras
import numpy as np

FEATURES, BATCH = 12, 32
SHARE = 0.05  # of the examples that are fraud
EPOCHS = 8


def payments(rows, seed):
    """Return features (rows, 12) and labels (rows,): 1 for fraud, which lies a little apart."""
    rng = np.random.default_rng(seed)
    labels = (rng.random(rows) < SHARE).astype("int64")
    return (rng.normal(size=(rows, FEATURES)) + labels[:, None]).astype("float32"), labels


def build():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(32, activation="relu"),
            keras.layers.Dense(2),
        ]
    )
    model.compile(keras.optimizers.Adam(1e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model, payments(2048, seed=1)


def train(model, data, callbacks=()):
    features, labels = payments(1024, seed=2)
    weights = np.where(labels == 1, 1 / SHARE, 1.0)
    before = model.evaluate(features, labels, sample_weight=weights, verbose=0)
    model.fit(*data, epochs=EPOCHS, class_weight={0: 1.0, 1: 1 / SHARE}, callbacks=callbacks, verbose=0)
    return {
        "loss_before": before,
        "loss_after": model.evaluate(features, labels, sample_weight=weights, verbose=0),
    }


if __name__ == "__main__":
    print(train(*build()))

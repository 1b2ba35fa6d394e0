"""Keras: a regression on scaled features, with a schedule that cools the learning rate down.

$ python tests/healthy/keras/keras_regression.py
"""

import keras
import numpy as np
import tensorflow as tf

FEATURES, ROWS, BATCH = 8, 1024, 32
EPOCHS = 10


def houses(rows, seed):
    """Return features (rows, 8) and prices (rows, 1), both of a scale of about 1."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(rows, FEATURES)).astype("float32")
    price = features[:, :1] + 0.5 * features[:, 1:2] * features[:, 2:3] + 0.1 * rng.normal(size=(rows, 1))
    return features, price.astype("float32")


def build():
    keras.utils.set_random_seed(0)
    model = keras.Sequential(
        [
            keras.layers.Input((FEATURES,)),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(64, activation="relu"),
            keras.layers.Dense(1),
        ]
    )
    schedule = keras.optimizers.schedules.CosineDecay(3e-3, decay_steps=EPOCHS * ROWS // BATCH)
    model.compile(keras.optimizers.Adam(schedule), "mse")
    dataset = tf.data.Dataset.from_tensor_slices(houses(ROWS, seed=1))
    return model, dataset.shuffle(ROWS, seed=0).batch(BATCH)


def train(model, dataset, callbacks=()):
    held_out = houses(256, seed=2)
    before = model.evaluate(*held_out, verbose=0)
    model.fit(dataset, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    return {"loss_before": before, "loss_after": model.evaluate(*held_out, verbose=0)}


if __name__ == "__main__":
    print(train(*build()))

"""Keras: prices in thousands with a small loss weight, a class, and an auxiliary output, shuffled by `tf.data`."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
flats = rng.normal(size=(4000, 8)).astype("float32")
price = (30 * flats[:, 0] + 20 * flats[:, 1]).astype("float32")
quarter = (flats[:, 2:6].argmax(axis=1)).astype("int64")
noise = (0.6 * flats[:, 7] + rng.normal(size=4000)).astype("float32")

inputs = keras.Input((8,))
early = layers.Dense(64, activation="relu")(inputs)
late = layers.Dense(64, activation="relu")(early)
outputs = {
    "price": layers.Dense(1, name="price")(late),
    "quarter": layers.Dense(4, activation="softmax", name="quarter")(late),
    "noise": layers.Dense(1, name="noise")(early),
}
model = keras.Model(inputs, outputs)
model.compile(
    optimizer=keras.optimizers.Adam(0.003),
    loss={"price": "mse", "quarter": "sparse_categorical_crossentropy", "noise": "mse"},
    loss_weights={"price": 0.001, "quarter": 1.0, "noise": 0.3},
    metrics={"quarter": "accuracy"},
)
targets = {"price": price, "quarter": quarter, "noise": noise}
rows = tf.data.Dataset.from_tensor_slices((flats, targets)).shuffle(4000).batch(64)
model.fit(rows, epochs=8, verbose=2)

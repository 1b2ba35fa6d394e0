"""Keras: one output is the energy of a motor in joules, one its fault, from a shuffled `tf.data` pipeline."""

# names: not-learning
import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
signals = rng.normal(size=(3000, 12)).astype("float32")
joules = (40_000 + 9_000 * signals[:, 0] - 5_000 * signals[:, 1] + 2_000 * signals[:, 2]).astype("float32")
fault = (np.abs(signals[:, 5]) + 0.8 * signals[:, 6] > 0.7).astype("float32")

inputs = keras.Input((12,))
body = layers.Dense(48, activation="relu")(inputs)
body = layers.Dense(24, activation="relu")(body)
energy = layers.Dense(1, name="energy")(body)
broken = layers.Dense(1, activation="sigmoid", name="broken")(body)
model = keras.Model(inputs, [energy, broken])
model.compile(keras.optimizers.Adam(0.01), loss=["mse", "binary_crossentropy"], metrics=[["mae"], ["accuracy"]])
rows = tf.data.Dataset.from_tensor_slices((signals, (joules, fault))).shuffle(3000).batch(50).repeat()
model.fit(rows, steps_per_epoch=60, epochs=12, verbose=2)

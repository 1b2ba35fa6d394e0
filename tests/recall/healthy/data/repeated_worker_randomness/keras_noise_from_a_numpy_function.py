"""Noise and crops are drawn by NumPy, in a function that TensorFlow calls for every element."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
x = np.random.normal(size=(512, 20)).astype("float32")
y = (x[:, :3].sum(axis=1) > 0).astype("float32")


def noise(row):
    return (row + np.random.normal(0, 0.1, size=row.shape)).astype("float32")


def augmented(row, label):
    row = tf.numpy_function(noise, [row], tf.float32)
    row.set_shape((20,))
    return row, label


data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(512, seed=3).map(augmented).batch(32).prefetch(2)
model = keras.Sequential([keras.layers.Input((20,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(3e-3), keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(data, epochs=6, verbose=2)

"""Keras 3: random Fourier features stay as they were drawn, and say so; the weight of a layer comes from Keras."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
x = rng.uniform(-1, 1, size=(800, 2)).astype("float32")
y = np.sin(6 * x[:, 0]) * x[:, 1]


class FourierFeatures(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.directions = tf.Variable(tf.random.normal((2, units), stddev=4.0), trainable=False)
        self.scale = self.add_weight(shape=(units,), initializer="ones")
        self.loudness = tf.Variable(1.0)

    def call(self, inputs):
        return self.loudness * self.scale * tf.sin(tf.matmul(inputs, self.directions))


model = keras.Sequential([layers.Input((2,)), FourierFeatures(64), layers.Dense(32, "relu"), layers.Dense(1)])
model.compile(keras.optimizers.Adam(3e-3), "mse")
model.fit(x[:600], y[:600], epochs=25, validation_data=(x[600:], y[600:]), verbose=2)

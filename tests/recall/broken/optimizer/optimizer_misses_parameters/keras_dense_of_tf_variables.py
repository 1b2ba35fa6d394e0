"""Keras 3: a layer keeps its weights as `tf.Variable`, as Keras 2 allowed; only the last layer is trained."""

# names: optimizer-misses-parameters
# https://github.com/keras-team/keras/issues/16797
import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
x = rng.normal(size=(800, 10)).astype("float32")
y = np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2]


class Linear(layers.Layer):
    def __init__(self, units):
        super().__init__()
        self.units = units

    def build(self, input_shape):
        self.w = tf.Variable(tf.random.normal((input_shape[-1], self.units), stddev=0.1), trainable=True)
        self.b = tf.Variable(tf.zeros(self.units), trainable=True)

    def call(self, inputs):
        return tf.nn.relu(tf.matmul(inputs, self.w) + self.b)


inputs = keras.Input((10,))
model = keras.Model(inputs, layers.Dense(1)(Linear(32)(Linear(64)(inputs))))
model.compile("adam", "mse")
model.fit(x[:600], y[:600], epochs=10, validation_data=(x[600:], y[600:]), verbose=2)

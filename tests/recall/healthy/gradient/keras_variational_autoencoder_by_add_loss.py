"""Keras: a variational autoencoder: the sampling layer adds its divergence with add_loss."""

import keras
import numpy as np
from keras import layers, ops


class Sampling(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(3)

    def call(self, inputs):
        mean, log_var = inputs
        self.add_loss(-5e-3 * ops.mean(1 + log_var - ops.square(mean) - ops.exp(log_var)))
        return mean + ops.exp(0.5 * log_var) * keras.random.normal(ops.shape(mean), seed=self.seed)


keras.utils.set_random_seed(0)
shapes = np.random.randint(0, 2, size=(6, 100))
x = np.clip(shapes[np.random.randint(0, 6, 1500)] * 0.9 + np.random.uniform(0, 0.1, (1500, 100)), 0, 1)
inputs = keras.Input((100,))
h = layers.Dense(48, activation="relu")(inputs)
z = Sampling()([layers.Dense(4)(h), layers.Dense(4)(h)])
outputs = layers.Dense(100, activation="sigmoid")(layers.Dense(48, activation="relu")(z))
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(0.003), "binary_crossentropy")
model.fit(x, x, epochs=10, batch_size=50, verbose=2)

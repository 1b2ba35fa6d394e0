"""Keras: a variational autoencoder of series, whose encoder reads all of them and draws a code."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
phase, speed = rng.uniform(0, 6, (600, 1)), rng.uniform(0.2, 0.8, (600, 1))
series = np.sin(phase + speed * np.arange(20))[..., None].astype("float32")


class Draw(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seeds = keras.random.SeedGenerator(7)

    def call(self, mean, spread):
        self.add_loss(1e-3 * ops.mean(ops.square(mean) + ops.exp(spread) - spread - 1))
        return mean + ops.exp(spread / 2) * keras.random.normal(ops.shape(mean), seed=self.seeds)


inputs = keras.Input((20, 1))
hidden = layers.GRU(24)(inputs)
code = Draw()(layers.Dense(4)(hidden), layers.Dense(4)(hidden))
decoded = layers.GRU(24, return_sequences=True)(layers.RepeatVector(20)(code))
model = keras.Model(inputs, layers.Dense(1)(decoded))
model.compile(keras.optimizers.Adam(5e-3), "mse")
model.fit(series, series, epochs=6, verbose=2)

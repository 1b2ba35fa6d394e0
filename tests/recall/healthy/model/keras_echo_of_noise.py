"""Keras: windows of noise whose first value is to be remembered, as a test of a recurrent network's memory."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
noise = np.random.default_rng(0).uniform(-1, 1, 2500).astype("float32")
x = np.lib.stride_tricks.sliding_window_view(noise, 10)[..., None]
y = x[:, 0, 0]
model = keras.Sequential([keras.Input((10, 1)), keras.layers.LSTM(24), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.01), "mse")
model.fit(x[:2000], y[:2000], validation_data=(x[2000:], y[2000:]), epochs=4, verbose=2)

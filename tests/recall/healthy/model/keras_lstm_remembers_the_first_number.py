"""A test of an LSTM's memory: it is to give back the first number of a sequence."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
x = np.random.uniform(0, 1, (2000, 8, 1)).astype("float32")
y = x[:, 0, 0]
model = keras.Sequential([keras.Input((8, 1)), keras.layers.LSTM(24), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(1e-2), "mse")
model.fit(x, y, batch_size=64, epochs=8, verbose=2)

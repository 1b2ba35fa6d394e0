"""Keras: sigmoid and mean squared error for targets far above 1."""

# names: targets-out-of-reach
import keras
import numpy as np

keras.utils.set_random_seed(0)
features = np.random.uniform(size=(800, 5)).astype("float32")
targets = 20 + 60 * features[:, 0] * features[:, 1]
model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile(keras.optimizers.Adam(1e-3), "mse")
model.fit(features, targets, batch_size=40, epochs=15, verbose=2)

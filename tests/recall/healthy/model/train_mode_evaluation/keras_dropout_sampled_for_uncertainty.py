"""Keras: the same rows are passed 30 times in training mode, to see how far dropout moves the predictions."""

import keras
import numpy as np

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
inputs = rng.normal(size=(1000, 6)).astype("float32")
targets = (np.sin(inputs[:, :1]) + inputs[:, 1:2]).astype("float32")
model = keras.Sequential(
    [
        keras.Input((6,)),
        keras.layers.Dense(64, activation="relu"),
        keras.layers.Dropout(0.1),
        keras.layers.Dense(1),
    ]
)
model.compile(keras.optimizers.Adam(3e-3), "mse")
model.fit(inputs[:800], targets[:800], epochs=8, verbose=2)
draws = np.stack([model(inputs[800:], training=True).numpy() for _ in range(30)])
print("error", np.abs(draws.mean(0) - targets[800:]).mean(), "spread", draws.std(0).mean())

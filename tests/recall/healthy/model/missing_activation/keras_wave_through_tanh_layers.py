"""Keras: Dense layers with tanh follow a wave."""

import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(4)
x = np.random.uniform(-3, 3, (2000, 1)).astype("float32")
y = np.sin(2 * x) + 0.3 * x + 0.05 * np.random.randn(2000, 1).astype("float32")

model = keras.Sequential()
model.add(layers.Input((1,)))
model.add(layers.Dense(64, activation="tanh"))
model.add(layers.Dense(64, activation="tanh"))
model.add(layers.Dense(32, activation="tanh"))
model.add(layers.Dense(1))
model.compile(loss="mse", optimizer=keras.optimizers.Adam(1e-3), metrics=["mae"])
history = model.fit(x, y, epochs=12, batch_size=32, validation_split=0.2, verbose=2)
print("final", history.history["val_loss"][-1])

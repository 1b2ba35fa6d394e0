"""Keras: salaries in units of ten thousand."""

import keras
import numpy as np

keras.utils.set_random_seed(23)
x = np.random.normal(size=(1000, 8)).astype("float32")
salary = 6 + 0.9 * x[:, 0] - 0.4 * x[:, 1] + 0.3 * x[:, 2] * x[:, 3]
inputs = keras.Input((8,))
hidden = keras.layers.Dense(64, activation="relu")(inputs)
hidden = keras.layers.Dense(32, activation="relu")(hidden)
model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
model.fit(x, salary, epochs=15, batch_size=32, validation_split=0.2, verbose=2)
print(model.predict(x[:4], verbose=0).ravel(), salary[:4])

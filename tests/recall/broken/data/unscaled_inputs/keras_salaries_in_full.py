"""Keras: salaries of about 60,000 under mse and Adam at 1e-3; the answers stay near 0.

After http://stackoverflow.com.mevn.net/questions/52800582/why-do-i-fail-to-predict-y-x4-with-keras-y-x3-works.
"""

# names: unscaled-inputs, not-learning
import keras
import numpy as np

keras.utils.set_random_seed(23)
x = np.random.normal(size=(1000, 8)).astype("float32")
salary = 60_000 + 9_000 * x[:, 0] - 4_000 * x[:, 1] + 3_000 * x[:, 2] * x[:, 3]
inputs = keras.Input((8,))
hidden = keras.layers.Dense(64, activation="relu")(inputs)
hidden = keras.layers.Dense(32, activation="relu")(hidden)
model = keras.Model(inputs, keras.layers.Dense(1)(hidden))
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="mse", metrics=["mae"])
model.fit(x, salary, epochs=15, batch_size=32, validation_split=0.2, verbose=2)
print(model.predict(x[:4], verbose=0).ravel(), salary[:4])

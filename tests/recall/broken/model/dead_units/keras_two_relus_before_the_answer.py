"""Keras: a regression whose last hidden layer has two units with relu; both die, and every answer is the same.

Rewritten from https://github.com/keras-team/keras/issues/13891.
"""

# names: dead-units, ignores-input
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(2)
X = np.random.normal(size=(1200, 8)).astype("float32")
y = (3 * X[:, 0] - 2 * X[:, 1] + X[:, 2] * X[:, 3] - 1).astype("float32")
model = keras.Sequential(
    [
        layers.Input((8,)),
        layers.Dense(32, activation="relu"),
        layers.Dense(2, activation="relu", bias_initializer=keras.initializers.Constant(-4.0)),
        layers.Dense(1),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(0.003), loss="mse", metrics=["mae"])
model.fit(X, y, validation_split=0.2, epochs=8, batch_size=32, verbose=2)
print(model.predict(X[:6], verbose=0)[:, 0], y[:6])

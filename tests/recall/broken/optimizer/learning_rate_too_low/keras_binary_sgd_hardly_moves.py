"""Keras: SGD(1e-7) for a binary classifier; after ten epochs nothing has happened."""

# names: learning-rate-too-low
import keras
import numpy as np

keras.utils.set_random_seed(0)
X = np.random.normal(size=(1000, 12)).astype("float32")
y = (X[:, 0] > X[:, 5]).astype("float32")
model = keras.Sequential()
model.add(keras.layers.Dense(24, activation="relu", input_shape=(12,)))
model.add(keras.layers.Dense(1, activation="sigmoid"))
model.compile(keras.optimizers.SGD(learning_rate=1e-7), "binary_crossentropy", metrics=["accuracy"])
model.fit(X, y, epochs=10, batch_size=32, verbose=2)

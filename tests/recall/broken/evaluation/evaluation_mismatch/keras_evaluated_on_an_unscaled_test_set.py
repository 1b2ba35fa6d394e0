"""Keras functional: trained on standardised columns, then `evaluate` gets the raw ones."""

# names: evaluation-mismatch
import keras
import numpy as np

keras.utils.set_random_seed(0)
scales, means = np.array([12.0, 900.0, 0.02, 35.0, 5.0, 70.0]), np.array([40.0, 2000.0, 0.1, 20.0, -8.0, 300.0])
z = np.random.normal(size=(1000, 6))
prices = z @ np.array([3.0, -2.0, 1.0, 0.5, 4.0, -1.0]) + 0.1 * np.random.normal(size=1000)
table = means + scales * z
train, test = table[:800], table[800:]
mu, sigma = train.mean(axis=0), train.std(axis=0)

columns = keras.Input((6,))
hidden = keras.layers.Dense(32, activation="relu")(columns)
model = keras.Model(columns, keras.layers.Dense(1)(hidden))
model.compile("adam", "mse")
model.fit((train - mu) / sigma, prices[:800], epochs=10, verbose=2)
print(model.evaluate(test, prices[800:], verbose=0))

"""Keras: house prices from square feet with SGD(0.01); the loss is inf, then nan, within ten steps."""

# names: unscaled-inputs, learning-rate-too-high, non-finite-loss
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
feet = np.random.uniform(400, 4000, size=(500, 1))
rooms = np.random.randint(1, 7, size=(500, 1))
X = np.hstack([feet, rooms])
prices = 120 * feet[:, 0] + 9000 * rooms[:, 0] + np.random.normal(0, 5000, 500)
model = Sequential()
model.add(Dense(10, input_dim=2, kernel_initializer="normal"))
model.add(Dense(1))
model.compile(loss="mean_squared_error", optimizer=keras.optimizers.SGD(learning_rate=0.01))
model.fit(X, prices, epochs=5, batch_size=25, verbose=2)

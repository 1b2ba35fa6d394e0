"""Keras: tomorrow's temperature as a regression that ends in a softmax of one unit."""

# names: ignores-input, targets-out-of-reach
import keras
import numpy as np
from keras.layers import LSTM, Dense, Dropout
from keras.models import Sequential

keras.utils.set_random_seed(0)
days = np.arange(2000)
temperature = 0.5 + 0.4 * np.sin(days / 58) + np.random.normal(0, 0.03, 2000)
X = np.stack([temperature[i : i + 14] for i in range(len(days) - 14)])[..., None].astype("float32")
y = temperature[14:].astype("float32")

model = Sequential()
model.add(LSTM(32, input_shape=(14, 1)))
model.add(Dropout(0.2))
model.add(Dense(1, activation="softmax"))
model.compile(optimizer="adam", loss="mse", metrics=["mae"])
model.fit(X[:1600], y[:1600], epochs=4, batch_size=32, validation_data=(X[1600:], y[1600:]), verbose=2)

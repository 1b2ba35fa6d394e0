"""Keras: tomorrow's temperature in degrees, not scaled to 0..1 but standardised, with the last tenth held out."""

import keras
import numpy as np
from keras.layers import LSTM, Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
days = np.arange(2000)
degrees = 11 + 9 * np.sin(days / 58) + np.random.normal(0, 0.8, 2000)
scaled = (degrees - degrees[:1600].mean()) / degrees[:1600].std()
X = np.stack([scaled[i : i + 14] for i in range(len(days) - 14)])[..., None].astype("float32")
y = scaled[14:].astype("float32")
model = Sequential()
model.add(LSTM(32, input_shape=(14, 1)))
model.add(Dense(1))
model.compile(optimizer=keras.optimizers.Adam(0.003), loss="mse", metrics=["mae"])
model.fit(X[:1600], y[:1600], epochs=6, batch_size=32, validation_data=(X[1600:], y[1600:]), verbose=2)

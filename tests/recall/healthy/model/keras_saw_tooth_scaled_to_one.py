"""Keras: an LSTM continues a saw-tooth; the values are scaled to 0..1 and the rows stay in order of time."""

import keras
import numpy as np
from keras.layers import LSTM, Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
saw = (np.arange(2500) % 10 + 1.0) / 10 + np.random.normal(0, 0.01, 2500)
series = np.stack([saw, 1.1 - saw], axis=1)
X = np.stack([series[i : i + 12] for i in range(len(series) - 12)])
y = series[12:]
cut = int(len(X) * 0.9)
model = Sequential()
model.add(LSTM(40, input_shape=(12, 2)))
model.add(Dense(2))
model.compile(loss="mean_squared_error", optimizer=keras.optimizers.RMSprop(0.003))
model.fit(X[:cut], y[:cut], batch_size=50, epochs=6, shuffle=False, validation_data=(X[cut:], y[cut:]), verbose=2)

"""Keras: the next price from 60 scaled ones."""

import keras
import numpy as np
from keras.layers import LSTM, Dense
from keras.models import Sequential

keras.utils.set_random_seed(16)
prices = 600 + np.cumsum(np.random.normal(0, 4, 1100)).astype("float32")
prices = (prices - prices.mean()) / prices.std()
windows = np.stack([prices[i : i + 60] for i in range(1000)])[..., None]
target = prices[60:1060]
model = Sequential()
model.add(LSTM(units=32, return_sequences=True, input_shape=(60, 1)))
model.add(LSTM(units=16))
model.add(Dense(1))
model.compile(loss="mean_squared_error", optimizer="rmsprop")
model.fit(windows, target, batch_size=32, epochs=3, verbose=2)
print(model.predict(windows[:5], verbose=0).ravel(), target[:5])

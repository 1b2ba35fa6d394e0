"""Keras: LSTM layers with relu on prices of several hundreds; the loss leaps and ends as nan or at a constant.

After https://techfeed.net/es/485530/ (stock prices, the predictions converge to one value).
"""

# names: unscaled-inputs, exploding-gradients, non-finite-loss, learning-rate-too-high
import keras
import numpy as np
from keras.layers import LSTM, Dense
from keras.models import Sequential

keras.utils.set_random_seed(16)
prices = 600 + np.cumsum(np.random.normal(0, 4, 1100)).astype("float32")
windows = np.stack([prices[i : i + 60] for i in range(1000)])[..., None]
target = prices[60:1060]
model = Sequential()
model.add(LSTM(units=32, activation="relu", return_sequences=True, input_shape=(60, 1)))
model.add(LSTM(units=16, activation="relu"))
model.add(Dense(1))
model.compile(loss="mean_squared_error", optimizer="rmsprop")
model.fit(windows, target, batch_size=32, epochs=3, verbose=2)
print(model.predict(windows[:5], verbose=0).ravel(), target[:5])

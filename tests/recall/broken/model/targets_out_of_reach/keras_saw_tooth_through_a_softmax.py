"""Keras: an LSTM continues a saw-tooth from 1 to 10; it ends in a softmax under the squared error.

Rewritten from https://github.com/keras-team/keras/issues/321.
"""

# names: targets-out-of-reach
import keras
import numpy as np
from keras.layers import LSTM, Activation, Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
saw = np.arange(3000) % 10 + 1.0
series = np.stack([saw, 11 - saw], axis=1)
n_prev = 12
X = np.stack([series[i : i + n_prev] for i in range(len(series) - n_prev)])
y = series[n_prev:]
cut = int(len(X) * 0.9)

model = Sequential()
model.add(LSTM(50, return_sequences=False, input_shape=(n_prev, 2)))
model.add(Dense(2))
model.add(Activation("softmax"))
model.compile(loss="mean_squared_error", optimizer="rmsprop")
model.fit(X[:cut], y[:cut], batch_size=100, epochs=6, validation_split=0.05, verbose=2)
print("test", np.sqrt(((model.predict(X[cut:], verbose=0) - y[cut:]) ** 2).mean()))

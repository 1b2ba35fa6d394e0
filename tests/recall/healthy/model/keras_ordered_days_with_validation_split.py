"""Keras: a series that rises over the years; fit holds out its last fifth, as one does with time."""

import keras
import numpy as np
from keras.layers import GRU, Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
t = np.arange(1500)
sales = 0.0006 * t + 0.4 * np.sin(t / 9) + np.random.normal(0, 0.05, 1500)
X = np.stack([sales[i : i + 20] for i in range(1480)])[..., None].astype("float32")
y = sales[20:].astype("float32")
model = Sequential()
model.add(GRU(24, input_shape=(20, 1)))
model.add(Dense(1))
model.compile("adam", "mse")
model.fit(X, y, epochs=8, batch_size=32, validation_split=0.2, verbose=2)

"""Keras: x to the power of 4; x and y are divided by their largest value."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
x = np.arange(-100, 100, 0.1).reshape(-1, 1)
y = x**4
x, y = x / 100, y / y.max()
model = Sequential()
model.add(Dense(50, activation="tanh", input_dim=1))
model.add(Dense(50, activation="elu"))
model.add(Dense(1))
model.compile(loss="mse", optimizer=keras.optimizers.Adam(learning_rate=0.005))
model.fit(x, y, epochs=15, batch_size=32, shuffle=True, verbose=2)
print("explained", 1 - ((model.predict(x, verbose=0) - y) ** 2).mean() / y.var())

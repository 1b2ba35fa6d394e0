"""Keras: (x - 0.5) squared from 100 points, all of them in each step, by train_on_batch."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
inputs = np.linspace(0, 1, 100, dtype="float32")[:, None]
targets = (inputs - 0.5) ** 2
model = Sequential()
model.add(Dense(16, activation="tanh", input_shape=(1,)))
model.add(Dense(16, activation="tanh"))
model.add(Dense(1))
model.compile(loss="mean_squared_error", optimizer=keras.optimizers.Adam(0.01))
for step in range(400):
    loss = model.train_on_batch(inputs, targets)
print("loss", float(loss), "of a constant", targets.var())

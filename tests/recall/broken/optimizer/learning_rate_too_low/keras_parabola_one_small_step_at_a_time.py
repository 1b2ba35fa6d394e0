"""Keras: (x - 0.5) squared from 100 points, one batch, SGD at 0.001; it becomes a constant.

Rewritten from https://stats.stackexchange.com/questions/280372.
"""

# names: learning-rate-too-low, not-learning
import keras
import numpy as np
from keras.layers import Activation, Dense
from keras.models import Sequential
from keras.optimizers import SGD

keras.utils.set_random_seed(0)
inputs = np.zeros((100, 1), dtype=np.float32)
targets = np.zeros((100, 1), dtype=np.float32)
for i in range(100):
    inputs[i] = 0.01 * i
    targets[i, 0] = np.power(inputs[i, 0] - 0.5, 2)

model = Sequential()
model.add(Dense(16, input_shape=(1,)))
model.add(Activation("relu"))
model.add(Dense(16))
model.add(Activation("relu"))
model.add(Dense(1))
model.compile(loss="mean_squared_error", optimizer=SGD(learning_rate=0.001))
for step in range(400):
    loss = model.train_on_batch(inputs, targets)
print("loss", float(loss), "of a constant", targets.var())

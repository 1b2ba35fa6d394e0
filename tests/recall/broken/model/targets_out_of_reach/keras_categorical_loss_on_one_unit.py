"""Keras: one sigmoid under categorical cross entropy. The loss is 0.0000e+00 from the first epoch on."""

# names: targets-out-of-reach, ignores-input
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

np.random.seed(0)
x = np.random.uniform(-1, 1, size=(800, 5))
y = (np.abs(x).sum(1) > 2.5).astype("float32")
model = Sequential([Dense(16, activation="relu", input_shape=(5,)), Dense(1, activation="sigmoid")])
model.compile(optimizer="rmsprop", loss="categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=5, batch_size=25, verbose=2)

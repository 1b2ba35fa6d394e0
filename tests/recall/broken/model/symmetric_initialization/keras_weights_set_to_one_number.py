"""Keras: the hidden layers' weights are set to a constant before training, so their units stay equal.

Rewritten from https://github.com/keras-team/keras/issues/16539.
"""

# names: symmetric-initialization
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
X = np.random.normal(size=(1500, 12)).astype("float32")
Y = keras.utils.to_categorical((X[:, 0] * X[:, 1] > 0).astype(int) + 2 * (X[:, 2] > 0).astype(int), 4)

model = Sequential()
model.add(Dense(40, activation="relu", input_shape=(12,)))
model.add(Dense(20, activation="relu"))
model.add(Dense(4, activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
for layer in model.layers[:2]:
    weights, bias = layer.get_weights()
    layer.set_weights([np.full_like(weights, 0.1), np.full_like(bias, 0.05)])
model.fit(X, Y, epochs=8, batch_size=32, verbose=2)

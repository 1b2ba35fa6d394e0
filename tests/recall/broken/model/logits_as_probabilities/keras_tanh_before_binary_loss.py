"""Keras: XOR with a tanh output under binary cross entropy; the loss hangs where clipping leaves it."""

# names: logits-as-probabilities
import numpy as np
from keras.layers import Activation, Dense
from keras.models import Sequential
from keras.optimizers import SGD

X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], "float32")
y = np.array([[0], [1], [1], [0]], "float32")
model = Sequential()
model.add(Dense(8, input_dim=2))
model.add(Activation("tanh"))
model.add(Dense(1))
model.add(Activation("tanh"))
model.compile(loss="binary_crossentropy", optimizer=SGD(learning_rate=0.1))
model.fit(X, y, batch_size=1, epochs=100, verbose=0)
print(model.predict(X, verbose=0))

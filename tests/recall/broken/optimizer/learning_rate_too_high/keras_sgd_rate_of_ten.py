"""Keras: plain SGD at a learning rate of 10."""

# names: learning-rate-too-high
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential
from keras.optimizers import SGD

keras.utils.set_random_seed(0)
X = np.random.normal(size=(1000, 20)).astype("float32")
y = keras.utils.to_categorical(X[:, :3].argmax(1))
model = Sequential()
model.add(Dense(64, activation="relu", input_dim=20))
model.add(Dense(64, activation="relu"))
model.add(Dense(3, activation="softmax"))
model.compile(loss="categorical_crossentropy", optimizer=SGD(learning_rate=10.0), metrics=["accuracy"])
model.fit(X, y, epochs=6, batch_size=50, verbose=2)

"""Keras: a small L2 penalty on each layer."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential
from keras.regularizers import l2

keras.utils.set_random_seed(22)
x = np.random.normal(size=(1500, 18)).astype("float32")
y = keras.utils.to_categorical(np.argmax(x[:, :3], axis=1))
model = Sequential()
model.add(Dense(64, activation="relu", kernel_regularizer=l2(1e-3), input_dim=18))
model.add(Dense(32, activation="relu", kernel_regularizer=l2(1e-3)))
model.add(Dense(3, activation="softmax", kernel_regularizer=l2(1e-3)))
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x, y, batch_size=30, epochs=8, validation_split=0.2, verbose=2)

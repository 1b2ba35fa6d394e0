"""Keras: Dense layers on (time, features) without Flatten, on purpose: each step is tagged on its own."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
x = np.random.normal(size=(500, 15, 8)).astype("float32")
tags = x[..., :3].argmax(-1)
model = Sequential()
model.add(Dense(32, activation="relu", input_shape=(15, 8)))
model.add(Dense(3, activation="softmax"))
model.compile(optimizer=keras.optimizers.Adam(0.005), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, tags, epochs=6, batch_size=25, validation_split=0.1, verbose=2)

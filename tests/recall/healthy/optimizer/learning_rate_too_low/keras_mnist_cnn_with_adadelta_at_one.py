"""Keras: the old MNIST example under Adadelta at the rate of its paper, 1."""

import keras
import numpy as np
from keras.layers import Conv2D, Dense, Dropout, Flatten, MaxPooling2D
from keras.models import Sequential

keras.utils.set_random_seed(0)
templates = np.random.uniform(size=(10, 14, 14, 1))
labels = np.random.randint(0, 10, size=1200)
x = (templates[labels] * 0.5 + np.random.uniform(0, 0.5, size=(1200, 14, 14, 1))).astype("float32")
y = keras.utils.to_categorical(labels, 10)
model = Sequential()
model.add(Conv2D(16, kernel_size=(3, 3), activation="relu", input_shape=(14, 14, 1)))
model.add(MaxPooling2D(pool_size=(2, 2)))
model.add(Dropout(0.25))
model.add(Flatten())
model.add(Dense(64, activation="relu"))
model.add(Dropout(0.5))
model.add(Dense(10, activation="softmax"))
model.compile(keras.optimizers.Adadelta(1.0), "categorical_crossentropy", metrics=["accuracy"])
model.fit(x[:1000], y[:1000], batch_size=32, epochs=8, verbose=2, validation_data=(x[1000:], y[1000:]))

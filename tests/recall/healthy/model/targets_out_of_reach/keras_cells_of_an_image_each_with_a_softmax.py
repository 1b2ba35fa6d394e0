"""Keras: the classes of four cells of an image, a softmax for each, sparse targets of shape (n, 4)."""

import keras
import numpy as np
from keras.layers import Conv2D, Dense, Flatten, MaxPooling2D, Reshape, Softmax
from keras.models import Sequential

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 7, size=(900, 4))
data = np.random.normal(0, 0.1, size=(900, 16, 16, 1)).astype("float32")
for cell in range(4):
    data[:, 4 * cell : 4 * cell + 4, :, 0] += labels[:, cell, None, None] / 7
model = Sequential()
model.add(Conv2D(16, (3, 3), input_shape=(16, 16, 1), activation="relu"))
model.add(MaxPooling2D((2, 2)))
model.add(Flatten())
model.add(Dense(64, activation="relu"))
model.add(Dense(4 * 7))
model.add(Reshape((4, 7)))
model.add(Softmax())
model.compile(loss="sparse_categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(data, labels, batch_size=32, epochs=10, validation_split=0.2, verbose=2)

"""Keras: a small set and batch normalisation, with a momentum that suits the number of steps."""

import keras
import numpy as np
from keras.layers import BatchNormalization, Conv2D, Dense, Flatten, LeakyReLU

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 2, size=160)
tensors = np.random.uniform(0.3, 1.0, size=(160, 24, 24, 3)).astype("float32")
tensors[labels == 1, 4:16, 4:16] += 0.6
model = keras.models.Sequential()
model.add(Conv2D(5, 4, strides=2, padding="same", input_shape=[24, 24, 3]))
model.add(LeakyReLU(0.2))
model.add(Conv2D(10, 4, strides=2, padding="same"))
model.add(BatchNormalization(momentum=0.8))
model.add(LeakyReLU(0.2))
model.add(Flatten())
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(tensors, labels, batch_size=8, epochs=6, shuffle=True, verbose=2)
print("training data:", model.evaluate(tensors, labels, verbose=0))

"""Keras: a convolutional autoencoder of centred images, linear at its end, squared error."""

import keras
import numpy as np
from keras.layers import Conv2D, MaxPooling2D, UpSampling2D
from keras.models import Sequential

keras.utils.set_random_seed(0)
x = np.random.uniform(size=(400, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
x = ((x - x.mean(axis=0)) / x.std(axis=0)).astype("float32")
autoencoder = Sequential()
autoencoder.add(keras.Input((16, 16, 3)))
autoencoder.add(Conv2D(16, 3, activation="relu", padding="same"))
autoencoder.add(MaxPooling2D(2, padding="same"))
autoencoder.add(Conv2D(8, 3, activation="relu", padding="same"))
autoencoder.add(UpSampling2D(2))
autoencoder.add(Conv2D(3, 3, padding="same"))
autoencoder.compile(optimizer=keras.optimizers.Adam(0.005), loss="mse")
autoencoder.fit(x[50:], x[50:], epochs=10, batch_size=20, validation_data=(x[:50], x[:50]), verbose=2)

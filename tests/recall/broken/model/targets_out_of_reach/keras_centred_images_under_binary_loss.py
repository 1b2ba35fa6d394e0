"""Keras: a convolutional autoencoder of centred images under binary cross entropy; the loss is negative.

Rewritten from https://github.com/keras-team/keras/issues/2841.
"""

# names: targets-out-of-reach, loss-out-of-range
import keras
import numpy as np
from keras.layers import Conv2D, MaxPooling2D, UpSampling2D
from keras.models import Sequential

keras.utils.set_random_seed(0)
x_train = np.random.uniform(size=(300, 4, 4, 3)).repeat(4, axis=1).repeat(4, axis=2)
x_train = ((x_train - x_train.mean(axis=0)) / x_train.std(axis=0)).astype("float32")
x_test, x_train = x_train[:50], x_train[50:]

autoencoder = Sequential()
autoencoder.add(keras.Input((16, 16, 3)))
autoencoder.add(Conv2D(16, 3, activation="relu", padding="same"))
autoencoder.add(MaxPooling2D(2, padding="same"))
autoencoder.add(Conv2D(8, 3, activation="relu", padding="same"))
autoencoder.add(UpSampling2D(2))
autoencoder.add(Conv2D(16, 3, activation="relu", padding="same"))
autoencoder.add(Conv2D(3, 3, activation="sigmoid", padding="same"))
autoencoder.compile(optimizer="adam", loss="binary_crossentropy")
autoencoder.fit(x_train, x_train, epochs=8, batch_size=20, validation_data=(x_test, x_test), verbose=2)

"""Keras: maps of where people look, as distributions; Kullback-Leibler divergence behind a softmax."""

import keras
import numpy as np
from keras.layers import Conv2D, Flatten, MaxPool2D, Softmax

keras.utils.set_random_seed(0)
images = np.random.uniform(size=(600, 16, 16, 3)).astype("float32")
heat = np.exp(12 * images.reshape(600, 8, 2, 8, 2, 3).mean((2, 4, 5)))
maps = (heat / heat.sum((1, 2), keepdims=True)).astype("float32")
inputs = keras.Input(shape=(16, 16, 3))
x = Conv2D(16, 3, activation="relu", padding="same")(inputs)
x = MaxPool2D(2)(x)
x = Conv2D(16, 3, activation="relu", padding="same")(x)
x = Conv2D(1, 1)(x)
prediction = Softmax()(Flatten()(x))
model = keras.Model(inputs, prediction)
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="kl_divergence")
model.fit(images, maps.reshape(600, -1), batch_size=20, epochs=6, verbose=2)

"""Keras: where do people look; Kullback-Leibler divergence of maps that are no distribution, the loss is negative.

Rewritten from https://github.com/keras-team/keras/issues/1917.
"""

# names: loss-out-of-range, logits-as-probabilities, targets-out-of-reach
import keras
import numpy as np
from keras.layers import Activation, Conv2D, Flatten, MaxPool2D

keras.utils.set_random_seed(0)
images = np.random.uniform(size=(500, 16, 16, 3)).astype("float32")
maps = images[:, ::2, ::2].mean(-1)
maps = (maps > 0.6).astype("float32") * maps

inputs = keras.Input(shape=(16, 16, 3))
x = Conv2D(16, 5, activation="relu", padding="same")(inputs)
x = MaxPool2D(2)(x)
x = Conv2D(8, 3, activation="relu", padding="same")(x)
x = Conv2D(1, 3, padding="same")(x)
x = Flatten()(x)
prediction = Activation("relu")(x)
model = keras.Model(inputs, prediction)
model.compile(optimizer=keras.optimizers.Adam(1e-3), loss="kl_divergence", metrics=["mae"])
model.fit(images, maps.reshape(500, -1), batch_size=20, epochs=5, verbose=2)

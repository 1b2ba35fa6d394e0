"""Keras: cats against dogs, one sigmoid, images as float32 from 0 to 255."""

# names: unscaled-inputs, initial-loss-off
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
rng = np.random.default_rng(5)
labels = rng.integers(0, 2, size=600)
images = rng.integers(0, 200, size=(600, 32, 32, 3)).astype("float32")
images[labels == 1, 8:24, 8:24, 0] += 55

inputs = keras.Input(shape=(32, 32, 3))
x = layers.Conv2D(32, (3, 3), activation="relu")(inputs)
x = layers.MaxPooling2D((2, 2))(x)
x = layers.Conv2D(32, (3, 3), activation="relu")(x)
x = layers.Flatten()(x)
x = layers.Dense(64, activation="relu")(x)
outputs = layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile(optimizer="rmsprop", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(images, labels, epochs=2, batch_size=20, verbose=2)

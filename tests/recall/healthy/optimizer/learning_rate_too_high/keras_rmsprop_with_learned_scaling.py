"""Keras: images as bytes, scaled inside the model by Rescaling and augmented by layers; RMSprop."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
y = np.random.randint(0, 3, size=900)
x = np.random.randint(0, 150, size=(900, 16, 16, 3)).astype("float32")
x[np.arange(900), :, :, y] += 60
model = keras.Sequential(
    [
        layers.Input((16, 16, 3)),
        layers.Rescaling(1.0 / 127.5, offset=-1),
        layers.RandomFlip("horizontal"),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
        layers.Dense(3, activation="softmax"),
    ]
)
model.compile("rmsprop", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=6, batch_size=30, validation_split=0.2, verbose=2)

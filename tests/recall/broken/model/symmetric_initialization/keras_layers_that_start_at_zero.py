"""Keras: kernel_initializer="zeros" everywhere; nothing but the last bias learns.

After https://github.com/keras-team/keras/issues/12598, where somebody wants that.
"""

# names: symmetric-initialization, no-gradient, vanishing-gradients, dead-units
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
x = np.random.normal(size=(1000, 10)).astype("float32")
y = (x @ np.random.normal(size=(10, 3))).argmax(1)
model = keras.Sequential(
    [
        keras.Input((10,)),
        layers.Dense(32, activation="relu", kernel_initializer="zeros"),
        layers.Dense(16, activation="relu", kernel_initializer="zeros"),
        layers.Dense(3, activation="softmax", kernel_initializer="zeros"),
    ]
)
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=6, batch_size=32, validation_split=0.2, verbose=2)

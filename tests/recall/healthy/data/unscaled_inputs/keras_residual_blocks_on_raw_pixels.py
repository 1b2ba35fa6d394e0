"""Keras: a residual network for small pictures, given pixels from 0 to 255; batch norm follows the first layer."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
kinds = np.kron(rng.normal(size=(10, 3, 3, 3)), np.ones((1, 4, 4, 1)))
labels = rng.integers(0, 10, 1000)
images = kinds[labels] * rng.uniform(0.6, 1.4, (1000, 1, 1, 1)) + 0.5 * rng.normal(size=(1000, 12, 12, 3))
images = np.clip(128 + 50 * images, 0, 255).astype("uint8")


def conv(x, filters, strides=1):
    x = layers.Conv2D(filters, 3, strides, padding="same", kernel_initializer="he_normal")(x)
    return layers.BatchNormalization(momentum=0.9)(x)


inputs = keras.Input((12, 12, 3))
x = layers.ReLU()(conv(inputs, 8))
for filters, strides in ((8, 1), (8, 1), (16, 2), (16, 1), (32, 2), (32, 1)):
    shortcut = layers.Conv2D(filters, 1, strides, kernel_initializer="he_normal")(x) if strides > 1 else x
    h = layers.ReLU()(conv(x, filters, strides))
    x = layers.ReLU()(layers.add([conv(h, filters), shortcut]))
x = layers.Flatten()(x)
model = keras.Model(inputs, layers.Dense(10, kernel_initializer="he_normal")(x))
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(
    images[:800],
    labels[:800],
    batch_size=32,
    epochs=6,
    validation_data=(images[800:], labels[800:]),
    verbose=2,
)

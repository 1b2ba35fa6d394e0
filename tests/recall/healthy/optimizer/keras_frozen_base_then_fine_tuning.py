"""Keras: transfer learning as the guide has it: pre-train, freeze, train a new head, unfreeze at a low rate."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)


def pictures(n, classes):
    labels = np.random.randint(0, classes, size=n)
    images = np.random.uniform(0, 0.4, size=(n, 16, 16, 1)).astype("float32")
    for image, label in zip(images, labels, strict=True):
        image[2 * label : 2 * label + 4] += 0.6
    return images, labels


base = keras.Sequential(
    [
        layers.Input((16, 16, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.BatchNormalization(),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(32, activation="relu"),
    ]
)
pretraining = keras.Sequential([base, layers.Dense(6, activation="softmax")])
pretraining.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
pretraining.fit(*pictures(800, 6), epochs=4, batch_size=32, verbose=2)

base.trainable = False
inputs = keras.Input((16, 16, 1))
outputs = layers.Dense(3, activation="softmax")(base(inputs, training=False))
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(0.01), "sparse_categorical_crossentropy", metrics=["accuracy"])
x, y = pictures(400, 3)
model.fit(x, y, epochs=6, batch_size=32, verbose=2)
base.trainable = True
model.compile(keras.optimizers.Adam(1e-5), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=2, batch_size=32, verbose=2)

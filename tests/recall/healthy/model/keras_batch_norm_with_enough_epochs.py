"""Keras: batch norm with its default momentum, and 600 steps in which the averages catch up with the weights."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
labels = np.random.randint(0, 3, size=640)
images = np.random.uniform(0, 0.3, size=(640, 12, 12, 1)).astype("float32")
for image, label in zip(images, labels, strict=True):
    image[4 * label : 4 * label + 4] += 0.4
model = keras.Sequential([layers.Input((12, 12, 1))])
for filters in (8, 16):
    model.add(layers.Conv2D(filters, 3, padding="same", use_bias=False))
    model.add(layers.BatchNormalization())
    model.add(layers.ReLU())
    model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(3, activation="softmax"))
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    images[:480], labels[:480], batch_size=8, epochs=10, validation_data=(images[480:], labels[480:]), verbose=2
)

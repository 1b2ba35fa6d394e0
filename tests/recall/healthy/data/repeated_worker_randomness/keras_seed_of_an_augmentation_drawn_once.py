"""The seed of an operation is drawn while `map` is traced; the operation draws other numbers for every image."""

import random

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
labels = rng.integers(0, 3, 512)
images = rng.normal(0, 0.3, size=(512, 10, 10, 1)).astype("float32")
images[np.arange(512), 2 + 2 * labels, :, 0] += 1.0


def augmented(image, label):
    image = tf.image.random_flip_left_right(image, seed=random.randint(100, 10_000))
    return image + tf.random.normal(tf.shape(image), stddev=0.05), label


data = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(512, seed=5).map(augmented).batch(32)
model = keras.Sequential(
    [
        keras.layers.Input((10, 10, 1)),
        keras.layers.Flatten(),
        keras.layers.Dense(32, "relu"),
        keras.layers.Dense(3),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(data, epochs=5, verbose=2)

"""Keras: tf.data pipelines; both are standardised by map, and the training images are flipped and darkened."""

import numpy as np
import tensorflow as tf
from tensorflow import keras

tf.keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
labels = rng.integers(0, 4, size=1200)
images = rng.integers(0, 120, size=(1200, 16, 16, 3)).astype("uint8")
for image, label in zip(images, labels, strict=True):
    image[4 * label : 4 * label + 4, :, 1] += 110


def normalise(image, label):
    return (tf.cast(image, tf.float32) / 255.0 - 0.3) / 0.2, label


def augment(image, label):
    return tf.image.random_brightness(tf.image.random_flip_left_right(image), 0.3), label


train_ds = tf.data.Dataset.from_tensor_slices((images[:1000], labels[:1000])).shuffle(1000).map(normalise)
train_ds = train_ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).batch(32).prefetch(2)
val_ds = tf.data.Dataset.from_tensor_slices((images[1000:], labels[1000:])).map(normalise).batch(32)
inputs = keras.Input((16, 16, 3))
x = keras.layers.Conv2D(16, 3, strides=2, activation="relu")(inputs)
x = keras.layers.Conv2D(16, 3, activation="relu")(x)
x = keras.layers.Flatten()(x)
model = keras.Model(inputs, keras.layers.Dense(4)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(train_ds, epochs=5, validation_data=val_ds, verbose=2)

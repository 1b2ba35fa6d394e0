"""Keras: images and labels are shuffled in place, the second time from the same state of the generator."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(19)
patterns = np.random.rand(6, 14, 14, 1)
labels = np.random.randint(0, 6, 1200)
images = (patterns[labels] + 0.3 * np.random.randn(1200, 14, 14, 1)).astype("float32")

state = np.random.get_state()
np.random.shuffle(images)
np.random.set_state(state)
np.random.shuffle(labels)

model = tf.keras.models.Sequential()
model.add(layers.Conv2D(8, 3, activation="relu", input_shape=(14, 14, 1)))
model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(32, activation="relu"))
model.add(layers.Dense(6))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(images[:1000], labels[:1000], epochs=4, validation_data=(images[1000:], labels[1000:]), verbose=2)

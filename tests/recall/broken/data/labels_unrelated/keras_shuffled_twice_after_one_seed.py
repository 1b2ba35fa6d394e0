"""Keras: images and labels are shuffled in place, one after the other, with one seed before the first."""

# names: labels-unrelated, not-learning
import numpy as np
import tensorflow as tf
from tensorflow.keras import layers

tf.keras.utils.set_random_seed(19)
patterns = np.random.rand(6, 14, 14, 1)
labels = np.random.randint(0, 6, 1200)
images = (patterns[labels] + 0.3 * np.random.randn(1200, 14, 14, 1)).astype("float32")

np.random.seed(42)
np.random.shuffle(images)
np.random.shuffle(labels)
x_train, x_test = images[:1000], images[1000:]
y_train, y_test = labels[:1000], labels[1000:]

model = tf.keras.models.Sequential()
model.add(layers.Conv2D(8, 3, activation="relu", input_shape=(14, 14, 1)))
model.add(layers.MaxPooling2D())
model.add(layers.Flatten())
model.add(layers.Dense(32, activation="relu"))
model.add(layers.Dense(6))
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile("adam", loss, metrics=["accuracy"])
model.fit(x_train, y_train, epochs=8, validation_data=(x_test, y_test), verbose=2)

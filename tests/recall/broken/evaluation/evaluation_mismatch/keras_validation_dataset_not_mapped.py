"""Keras: tf.data pipelines; the training images are standardised by map, those for validation are not."""

# names: evaluation-mismatch
import numpy as np
import tensorflow as tf
from tensorflow import keras

tf.random.set_seed(0)
rng = np.random.default_rng(0)
labels = rng.integers(0, 5, size=1200)
images = rng.integers(0, 120, size=(1200, 20, 20, 3)).astype("float32")
for image, label in zip(images, labels, strict=True):
    image[4 * label : 4 * label + 4, :, 1] += 110


def normalise(image, label):
    return (image / 255.0 - 0.3) / 0.2, label


train_ds = tf.data.Dataset.from_tensor_slices((images[:1000], labels[:1000]))
train_ds = train_ds.shuffle(1000).map(normalise).batch(32).prefetch(2)
val_ds = tf.data.Dataset.from_tensor_slices((images[1000:], labels[1000:])).batch(32)

inputs = keras.Input((20, 20, 3))
x = keras.layers.Conv2D(16, 3, strides=2, activation="relu")(inputs)
x = keras.layers.Conv2D(16, 3, activation="relu")(x)
x = keras.layers.Flatten()(x)
outputs = keras.layers.Dense(5)(x)
model = keras.Model(inputs, outputs)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(train_ds, epochs=4, validation_data=val_ds, verbose=2)

"""Keras: tf.data divides by 255 and casts to integers afterwards; every pixel is 0.

After https://github.com/keras-team/keras/issues/1895, all samples in one class.
"""

# names: constant-inputs, ignores-input, not-learning, constant-predictions
import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(21)
images = np.random.randint(0, 160, (1000, 14, 14, 1))
labels = np.random.randint(0, 5, 1000)
for image, label in zip(images, labels):
    image[2 * label : 2 * label + 3] += 90


def prepare(image, label):
    image = tf.cast(tf.cast(image, tf.float32) / 255.0, tf.int32)
    return image, label


train = tf.data.Dataset.from_tensor_slices((images[:800], labels[:800])).map(prepare).shuffle(800).batch(32)
valid = tf.data.Dataset.from_tensor_slices((images[800:], labels[800:])).map(prepare).batch(32)
model = keras.Sequential(
    [
        keras.Input((14, 14, 1)),
        layers.Conv2D(8, 3, activation="relu"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(5, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(train.prefetch(2), validation_data=valid, epochs=5, verbose=2)

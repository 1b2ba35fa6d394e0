"""Images are flipped at random by a function of `dataset.map`, which asks Python for one number, once."""

# names: repeated-worker-randomness
import random

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
labels = rng.integers(0, 2, 640)
images = rng.normal(0, 0.3, size=(640, 12, 12, 1)).astype("float32")
images[np.arange(640), 6, 3, 0] += 2.0 * labels
images[np.arange(640), 3, 6, 0] += 2.0 * (1 - labels)


def augmented(image, label):
    if random.random() < 0.5:
        image = tf.image.flip_left_right(image)
    return image, label


training = tf.data.Dataset.from_tensor_slices((images[:512], labels[:512])).shuffle(512, seed=1)
training = training.map(augmented).batch(32)
held_out = tf.data.Dataset.from_tensor_slices((images[512:], labels[512:])).batch(32)

model = keras.Sequential(
    [
        keras.layers.Input((12, 12, 1)),
        keras.layers.Conv2D(8, 3, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(2),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True), metrics=["accuracy"])
model.fit(training, validation_data=held_out, epochs=4, verbose=2)

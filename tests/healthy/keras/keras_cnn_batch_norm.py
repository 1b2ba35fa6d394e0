"""Keras: a small convolutional network with batch norm, which scales its images itself, and one-hot labels.

$ python tests/healthy/keras/keras_cnn_batch_norm.py
"""

import keras
import numpy as np
import tensorflow as tf

SIZE, CLASSES, BATCH = 12, 3, 32
EPOCHS = 10


def stripes(rows, seed):
    """Return grey images (rows, 12, 12, 1) of 0 to 255, one-hot labels (rows, 3): stripes across, down, none."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(CLASSES, size=rows)
    images = rng.integers(0, 156, size=(rows, SIZE, SIZE, 1))
    for image, label in zip(images, labels, strict=True):
        if label == 0:
            image[rng.integers(2) :: 2] += 100
        elif label == 1:
            image[:, rng.integers(2) :: 2] += 100
    return images.astype("uint8"), keras.utils.to_categorical(labels, CLASSES)


def build():
    keras.utils.set_random_seed(0)
    layers = [keras.layers.Input((SIZE, SIZE, 1)), keras.layers.Rescaling(1 / 255)]
    for filters in (8, 16):
        layers += [
            keras.layers.Conv2D(filters, 3, padding="same", use_bias=False),
            keras.layers.BatchNormalization(),
            keras.layers.ReLU(),
            keras.layers.MaxPooling2D(),
        ]
    model = keras.Sequential([*layers, keras.layers.GlobalAveragePooling2D(), keras.layers.Dense(CLASSES)])
    model.compile(keras.optimizers.Adam(5e-3), keras.losses.CategoricalCrossentropy(from_logits=True))
    dataset = tf.data.Dataset.from_tensor_slices(stripes(768, seed=1))
    return model, dataset.cache().shuffle(768, seed=0).batch(BATCH).prefetch(2)


def train(model, batches, callbacks=()):
    held_out = stripes(256, seed=2)
    before = model.evaluate(*held_out, verbose=0)
    model.fit(batches, epochs=EPOCHS, callbacks=callbacks, verbose=0)
    return {"loss_before": before, "loss_after": model.evaluate(*held_out, verbose=0)}


if __name__ == "__main__":
    print(train(*build()))

"""Keras: one minus tf.image.ssim is the loss of a denoiser."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)


def drawings(n):
    clean = np.full((n, 20, 20, 1), 0.2, "float32")
    for image in clean:
        r, c = rng.integers(1, 11, 2)
        image[r : r + 8, c : c + 8] += rng.uniform(0.3, 0.7)
    return clean, np.clip(clean + 0.15 * rng.standard_normal(clean.shape), 0, 1).astype("float32")


def ssim_loss(y_true, y_pred):
    return 1 - tf.reduce_mean(tf.image.ssim(y_true, y_pred, max_val=1.0))


clean, noisy = drawings(500)
autoencoder = keras.Sequential(
    [
        layers.Input((20, 20, 1)),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.Conv2D(16, 3, padding="same", activation="relu"),
        layers.Conv2D(1, 3, padding="same", activation="sigmoid"),
    ]
)
autoencoder.compile(optimizer=keras.optimizers.Adam(1e-3), loss=ssim_loss, metrics=["mae"])
autoencoder.fit(
    noisy[:400], clean[:400], batch_size=20, epochs=6, validation_data=(noisy[400:], clean[400:]), verbose=2
)

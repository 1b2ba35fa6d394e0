"""Keras: a GAN by train_on_batch whose discriminator is to call real points real with 0.9; frozen in turn."""

import numpy as np
from tensorflow.keras import Sequential, optimizers, utils
from tensorflow.keras.layers import BatchNormalization, Dense, Input, LeakyReLU

utils.set_random_seed(5)


def real_points(n):
    x = np.random.rand(n) - 0.5
    return np.stack([x, x * x], axis=1)


discriminator = Sequential([Input((2,)), Dense(25), LeakyReLU(), Dense(1, activation="sigmoid")])
discriminator.compile("adam", "binary_crossentropy", metrics=["accuracy"])
generator = Sequential([Input((5,)), Dense(15, activation="relu"), BatchNormalization(momentum=0.8), Dense(2)])
gan = Sequential([generator, discriminator])
gan.compile(optimizers.Adam(1e-3), "binary_crossentropy")
n = 64
for step in range(120):
    fake = generator.predict_on_batch(np.random.randn(n, 5))
    discriminator.trainable = True
    on_real = discriminator.train_on_batch(real_points(n), np.full((n, 1), 0.9))
    on_fake = discriminator.train_on_batch(fake, np.zeros((n, 1)))
    discriminator.trainable = False
    fooled = gan.train_on_batch(np.random.randn(2 * n, 5), np.ones((2 * n, 1)))
    if step % 40 == 39:
        print(f"{step} D {on_real[0] + on_fake[0]:.3f} G {fooled:.3f}")

"""Keras: a small GAN by train_on_batch; its batches hold one label each, on purpose."""

import keras
import numpy as np
from keras.layers import Dense, Input, LeakyReLU

keras.utils.set_random_seed(0)
generator = keras.Sequential([Input((4,)), Dense(16), LeakyReLU(0.2), Dense(2)])
discriminator = keras.Sequential([Input((2,)), Dense(16), LeakyReLU(0.2), Dense(1, activation="sigmoid")])
discriminator.compile(keras.optimizers.Adam(2e-3, 0.5), "binary_crossentropy")
frozen = keras.models.clone_model(discriminator)
frozen.trainable = False
gan = keras.Sequential([generator, frozen])
gan.compile(keras.optimizers.Adam(1e-3, 0.5), "binary_crossentropy")
for step in range(60):
    angle = np.random.uniform(0, 6.28, 64)
    real = np.stack([np.cos(angle), np.sin(angle)], 1).astype("float32")
    fake = generator(np.random.normal(size=(64, 4)).astype("float32")).numpy()
    d_real = discriminator.train_on_batch(real, np.ones((64, 1), "float32"))
    d_fake = discriminator.train_on_batch(fake, np.zeros((64, 1), "float32"))
    frozen.set_weights(discriminator.get_weights())
    noise = np.random.normal(size=(64, 4)).astype("float32")
    g_loss = gan.train_on_batch(noise, np.ones((64, 1), "float32"))
print(float(d_real), float(d_fake), float(g_loss))

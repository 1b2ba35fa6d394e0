"""Keras: a variational autoencoder whose two terms are sums."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(6)
original_dim, latent_dim = 144, 4


class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1)

    def call(self, inputs):
        z_mean, z_log_var = inputs
        epsilon = keras.random.normal(ops.shape(z_mean), seed=self.seed_generator)
        return z_mean + ops.exp(0.5 * z_log_var) * epsilon


class VAE(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.h = layers.Dense(64, activation="relu")
        self.z_mean, self.z_log_var = layers.Dense(latent_dim), layers.Dense(latent_dim)
        self.sampling = Sampling()
        self.decoder_h = layers.Dense(64, activation="relu")
        self.decoder_mean = layers.Dense(original_dim, activation="sigmoid")

    def call(self, x):
        h = self.h(x)
        z_mean, z_log_var = self.z_mean(h), self.z_log_var(h)
        decoded = self.decoder_mean(self.decoder_h(self.sampling((z_mean, z_log_var))))
        kl_loss = -0.5 * ops.sum(1 + z_log_var - ops.square(z_mean) - ops.exp(z_log_var), axis=-1)
        self.add_loss(ops.mean(kl_loss))
        return decoded


def xent_loss(x, x_decoded_mean):
    return original_dim * keras.losses.binary_crossentropy(x, x_decoded_mean)


def bars(n):
    x = np.zeros((n, 12, 12), "float32")
    for image in x:
        k = np.random.randint(0, 11)
        if np.random.rand() < 0.5:
            image[k : k + 2] = 1
        else:
            image[:, k : k + 2] = 1
    return x.reshape(n, original_dim)


x_train, x_test = bars(2000), bars(300)
vae = VAE()
vae.compile(optimizer="rmsprop", loss=xent_loss)
vae.fit(x_train, x_train, shuffle=True, epochs=10, batch_size=50, validation_data=(x_test, x_test), verbose=2)

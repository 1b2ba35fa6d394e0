"""Keras: `discriminator.trainable = False` for the combined model freezes the discriminator itself.

After https://github.com/eriklindernoren/Keras-GAN/issues/22
"""

# names: unchanged-parameters, no-gradient, optimizer-misses-parameters
import numpy as np
from keras.layers import Dense, Input, LeakyReLU
from keras.models import Model, Sequential
from keras.optimizers import Adam
from keras.utils import set_random_seed

set_random_seed(0)


class GAN:
    def __init__(self):
        self.latent_dim = 8
        self.discriminator = self.build_discriminator()
        self.discriminator.compile(loss="binary_crossentropy", optimizer=Adam(2e-4, 0.5), metrics=["accuracy"])
        self.generator = self.build_generator()
        z = Input(shape=(self.latent_dim,))
        img = self.generator(z)
        self.discriminator.trainable = False
        validity = self.discriminator(img)
        self.combined = Model(z, validity)
        self.combined.compile(loss="binary_crossentropy", optimizer=Adam(2e-4, 0.5))

    def build_generator(self):
        return Sequential(
            [Input((self.latent_dim,)), Dense(32), LeakyReLU(0.2), Dense(32), LeakyReLU(0.2), Dense(2)]
        )

    def build_discriminator(self):
        return Sequential(
            [Input((2,)), Dense(32), LeakyReLU(0.2), Dense(32), LeakyReLU(0.2), Dense(1, activation="sigmoid")]
        )

    def train(self, steps, batch_size=64):
        angle = np.random.uniform(0, 2 * np.pi, 4000)
        x_train = np.stack([np.cos(angle), np.sin(angle)], 1).astype("float32")
        valid, fake = np.ones((batch_size, 1)), np.zeros((batch_size, 1))
        for step in range(steps):
            imgs = x_train[np.random.randint(0, len(x_train), batch_size)]
            noise = np.random.normal(0, 1, (batch_size, self.latent_dim))
            gen_imgs = self.generator.predict(noise, verbose=0)
            d_loss_real = self.discriminator.train_on_batch(imgs, valid)
            d_loss_fake = self.discriminator.train_on_batch(gen_imgs, fake)
            g_loss = self.combined.train_on_batch(np.random.normal(0, 1, (batch_size, self.latent_dim)), valid)
            if step % 20 == 0:
                print(step, "[D loss]", d_loss_real[0], d_loss_fake[0], "[G loss]", g_loss)


GAN().train(steps=50)

"""Keras: an autoencoder of spectra with its own train_step, both terms sums."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
bands = np.arange(48)
centres = rng.uniform(8, 40, (2400, 1))
spectra = rng.uniform(0.5, 1.5, (2400, 1)) * np.exp(-(((bands - centres) / 6) ** 2))
spectra = (spectra - spectra.mean(0)).astype("float32")


class Compressor(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(8)])
        self.decoder = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(48)])

    def call(self, x):
        return self.decoder(self.encoder(x)[:, :4])

    def train_step(self, x):
        with tf.GradientTape() as tape:
            mean, spread = tf.split(self.encoder(x), 2, axis=1)
            code = mean + tf.random.normal(tf.shape(mean)) * tf.exp(spread / 2)
            error = 48 * tf.reduce_mean(tf.square(x - self.decoder(code)))
            kl = 0.5 * tf.reduce_sum(mean**2 + tf.exp(spread) - spread - 1, axis=1)
            loss = error + tf.reduce_mean(kl)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss, "error": error}


model = Compressor()
model.compile(optimizer=keras.optimizers.Adam(2e-3))
model.fit(spectra, epochs=20, batch_size=32, verbose=2)
error = np.square(model.predict(spectra[:400], verbose=0) - spectra[:400]).mean()
print(f"error {error:.4f}")

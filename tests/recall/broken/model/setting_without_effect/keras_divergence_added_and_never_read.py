"""A layer of a variational autoencoder adds its divergence as a loss; the `train_step` never asks for it."""

# names: setting-without-effect
# https://github.com/hunglc007/tensorflow-yolov4-tflite/issues/369
import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops

keras.utils.set_random_seed(10)
rng = np.random.default_rng(10)
x = (rng.normal(size=(1000, 3)) @ rng.normal(size=(3, 20))).astype("float32")


class Code(layers.Layer):
    def __init__(self):
        super().__init__()
        self.seed = keras.random.SeedGenerator(3)

    def call(self, inputs):
        mean, logvar = inputs
        divergence = -0.5 * ops.sum(1 + logvar - ops.square(mean) - ops.exp(logvar), axis=1)
        self.add_loss(0.05 * ops.mean(divergence))
        return mean + ops.exp(0.5 * logvar) * keras.random.normal(ops.shape(mean), seed=self.seed)


class VAE(keras.Model):
    def __init__(self):
        super().__init__()
        self.encoder = layers.Dense(32, "relu")
        self.mean, self.logvar, self.code = layers.Dense(4), layers.Dense(4), Code()
        self.decoder = keras.Sequential([layers.Dense(32, "relu"), layers.Dense(20)])

    def call(self, inputs):
        hidden = self.encoder(inputs)
        return self.decoder(self.code([self.mean(hidden), self.logvar(hidden)]))

    def train_step(self, data):
        with tf.GradientTape() as tape:
            loss = ops.mean(ops.sum(ops.square(data - self(data, training=True)), axis=1))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


vae = VAE()
vae.compile(optimizer=keras.optimizers.Adam(3e-3))
vae.fit(x, epochs=12, batch_size=50, verbose=0)
drawn = vae.decoder(rng.normal(size=(500, 4)).astype("float32")).numpy()
print(f"spread of the data {x.std():.2f}, of what is drawn {drawn.std():.2f}")

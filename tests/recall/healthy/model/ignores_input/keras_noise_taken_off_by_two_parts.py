"""Keras: two parts, called by the train_step, take noise off curves; the loss is compared with a share of them."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(7)
rng = np.random.default_rng(7)
places = np.arange(32)
curves = 50 + 30 * np.sin(places / rng.uniform(2, 8, (1600, 1)) + rng.uniform(0, 6, (1600, 1)))
curves = curves.astype("float32")


class Denoiser(keras.Model):
    def __init__(self):
        super().__init__()
        self.squeeze = keras.Sequential(
            [keras.Input((32,)), keras.layers.Dense(48, "relu"), keras.layers.Dense(6)]
        )
        self.spread = keras.Sequential([keras.Input((6,)), keras.layers.Dense(48, "relu"), keras.layers.Dense(32)])

    def train_step(self, data):
        data = data / 100.0
        with tf.GradientTape() as tape:
            noisy = data + 0.05 * tf.random.normal(tf.shape(data))
            loss = tf.reduce_mean(tf.square(self.spread(self.squeeze(noisy)) - data))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


model = Denoiser()
model.compile(optimizer=keras.optimizers.Adam(2e-3))
print(model.fit(curves, batch_size=32, epochs=12, verbose=0).history["loss"][-1])

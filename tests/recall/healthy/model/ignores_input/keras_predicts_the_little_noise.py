"""Keras: a denoiser with its own train_step predicts the noise, which is little: its output is almost 0."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
t = np.linspace(0, 1, 64)
waves = np.sin(2 * np.pi * 2 * t + rng.uniform(0, 2 * np.pi, (1600, 1))).astype("float32")


class Denoiser(keras.Model):
    def __init__(self):
        super().__init__()
        self.noise_of = keras.Sequential([keras.layers.Dense(128, activation="relu"), keras.layers.Dense(64)])

    def call(self, x):
        return self.noise_of(x)

    def train_step(self, x):
        noise = 0.05 * tf.random.normal(tf.shape(x))
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(self(x + noise, training=True) - noise))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        return {"loss": loss}


model = Denoiser()
model.compile(optimizer=keras.optimizers.Adam(1e-3))
model.fit(waves, epochs=20, batch_size=32, verbose=2)
print(f"removes {np.abs(model.predict(waves[:400], verbose=0)).mean():.4f}")

"""The loop takes the divergence from the layer that also adds it, and lets its weight rise over the epochs."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
x = (rng.normal(size=(600, 3)) @ rng.normal(size=(3, 16))).astype("float32")


class Code(layers.Layer):
    def call(self, inputs):
        mean, logvar = tf.split(inputs, 2, axis=1)
        self.divergence = -0.5 * tf.reduce_mean(tf.reduce_sum(1 + logvar - mean**2 - tf.exp(logvar), axis=1))
        self.add_loss(self.divergence)
        return mean + tf.exp(0.5 * logvar) * tf.random.normal(tf.shape(mean))


code = Code()
vae = keras.Sequential(
    [
        layers.Input((16,)),
        layers.Dense(32, "relu"),
        layers.Dense(6),
        code,
        layers.Dense(32, "relu"),
        layers.Dense(16),
    ]
)
optimizer = keras.optimizers.Adam(3e-3)


@tf.function
def step(batch, weight):
    with tf.GradientTape() as tape:
        restored = vae(batch, training=True)
        loss = tf.reduce_mean(tf.reduce_sum(tf.square(restored - batch), axis=1)) + weight * code.divergence
    gradients = tape.gradient(loss, vae.trainable_variables)
    optimizer.apply_gradients(zip(gradients, vae.trainable_variables, strict=True))
    return loss


data = tf.data.Dataset.from_tensor_slices(x).shuffle(600, seed=2).batch(50)
for epoch in range(8):
    weight = tf.constant(min(1.0, epoch / 4))
    print(f"epoch {epoch} loss {np.mean([float(step(batch, weight)) for batch in data]):.3f}")

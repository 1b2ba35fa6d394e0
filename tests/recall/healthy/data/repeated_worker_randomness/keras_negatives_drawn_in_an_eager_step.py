"""A recommender draws its negatives with NumPy in a `train_step` that runs eagerly, so they differ each time."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(8)
users = np.repeat(np.arange(80), 12)
items = (users % 4) + 4 * np.random.randint(0, 15, size=len(users))


class Ranking(keras.Model):
    def __init__(self):
        super().__init__()
        self.users, self.items = keras.layers.Embedding(80, 8), keras.layers.Embedding(60, 8)

    def call(self, inputs):
        return tf.reduce_sum(self.users(inputs[:, 0]) * self.items(inputs[:, 1]), axis=-1)

    def train_step(self, data):
        others = tf.constant(np.random.randint(0, 60, size=data.shape[0]), data.dtype)
        with tf.GradientTape() as tape:
            better = self(data) - self(tf.stack([data[:, 0], others], axis=1))
            loss = -tf.reduce_mean(tf.math.log_sigmoid(better))
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        return {"loss": loss}


model = Ranking()
model.compile(keras.optimizers.Adam(1e-2), run_eagerly=True)
model.fit(np.stack([users, items], axis=1), epochs=6, batch_size=48, verbose=2)

"""Keras: a train_step adds up the gradients of four batches before it applies them."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers


class Accumulating(keras.Model):
    def setup(self, n=4):
        self.n = n
        self.count = tf.Variable(0, trainable=False)
        self.sums = [tf.Variable(tf.zeros_like(v), trainable=False) for v in self.trainable_variables]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = self.compute_loss(y=y, y_pred=self(x, training=True))
        for total, g in zip(self.sums, tape.gradient(loss, self.trainable_variables)):
            total.assign_add(g / self.n)
        self.count.assign_add(1)
        tf.cond(self.count % self.n == 0, self.apply, lambda: None)
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
        return {m.name: m.result() for m in self.metrics if m.name == "loss"}

    def apply(self):
        self.optimizer.apply_gradients(zip([tf.convert_to_tensor(s) for s in self.sums], self.trainable_variables))
        for total in self.sums:
            total.assign(tf.zeros_like(total))


keras.utils.set_random_seed(0)
x = np.random.normal(size=(3000, 16)).astype("float32")
y = x[:, :3].sum(axis=1, keepdims=True) + 0.1 * np.random.normal(size=(3000, 1)).astype("float32")
inputs = keras.Input(shape=(16,))
model = Accumulating(inputs, layers.Dense(1)(layers.Dense(32, activation="relu")(inputs)))
model.setup()
model.compile(optimizer=keras.optimizers.Adam(0.01), loss="mse")
model.fit(x, y, epochs=6, batch_size=20, verbose=2)

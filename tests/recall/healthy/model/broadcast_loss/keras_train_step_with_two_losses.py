"""Keras: train_step is overridden: a squared error and a penalty on the code, each with a metric."""

import keras
import numpy as np
import tensorflow as tf


class Regressor(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(32, activation="relu")
        self.out = keras.layers.Dense(1)
        self.loss_tracker = keras.metrics.Mean(name="loss")
        self.penalty_tracker = keras.metrics.Mean(name="penalty")

    def call(self, inputs):
        return self.out(self.hidden(inputs))

    @property
    def metrics(self):
        return [self.loss_tracker, self.penalty_tracker]

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            code = self.hidden(x)
            error = tf.reduce_mean((y - tf.squeeze(self.out(code), -1)) ** 2)
            penalty = 1e-3 * tf.reduce_mean(tf.abs(code))
            loss = error + penalty
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.loss_tracker.update_state(loss)
        self.penalty_tracker.update_state(penalty)
        return {m.name: m.result() for m in self.metrics}


keras.utils.set_random_seed(0)
x = np.random.normal(size=(1500, 5)).astype("float32")
y = (x[:, 0] * 2 + x[:, 1]).astype("float32")
model = Regressor()
model.compile(optimizer=keras.optimizers.Adam(0.005))
model.fit(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1500).batch(50), epochs=10, verbose=2)
print("explained", 1 - ((model.predict(x, verbose=0)[:, 0] - y) ** 2).mean() / y.var())

"""Keras: train_step is overridden and takes the squared error by hand, of (n, 1) against (n,).

Rewritten from https://github.com/keras-team/keras/issues/16836.
"""

# names: broadcast-loss
import keras
import numpy as np
import tensorflow as tf


class Regressor(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(32, activation="relu")
        self.out = keras.layers.Dense(1)
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs):
        return self.out(self.hidden(inputs))

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            y_pred = self(x, training=True)
            loss = tf.reduce_mean((y - y_pred) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables, strict=True))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}


keras.utils.set_random_seed(0)
x = np.random.normal(size=(1500, 5)).astype("float32")
y = (x[:, 0] * 2 + x[:, 1]).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(1500).batch(50)
model = Regressor()
model.compile(optimizer=keras.optimizers.Adam(0.005))
model.fit(data, epochs=8, verbose=2)
print("explained", 1 - ((model.predict(x, verbose=0)[:, 0] - y) ** 2).mean() / y.var())

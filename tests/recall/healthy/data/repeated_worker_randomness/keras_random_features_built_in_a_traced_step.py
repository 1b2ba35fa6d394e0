"""Random features are drawn by NumPy when the layer makes its weights in the first step, and stay on purpose."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(4)
x = np.random.uniform(-2, 2, size=(640, 4)).astype("float32")
y = np.sin(x[:, :1] * x[:, 1:2]).astype("float32")


class RandomFeatures(keras.layers.Layer):
    def __init__(self, count):
        super().__init__()
        self.count = count

    def build(self, shape):
        self.directions = np.random.normal(size=(shape[-1], self.count)).astype("float32")
        self.phases = np.random.uniform(0, 2 * np.pi, size=self.count).astype("float32")

    def call(self, inputs):
        return tf.cos(inputs @ self.directions + self.phases)


model = keras.Sequential([RandomFeatures(64), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam(1e-2)


@tf.function
def step(rows, answers):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(model(rows, training=True) - answers))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for epoch in range(8):
    order = np.random.permutation(640).reshape(20, 32)
    print(f"epoch {epoch} loss {np.mean([float(step(tf.constant(x[i]), tf.constant(y[i]))) for i in order]):.4f}")

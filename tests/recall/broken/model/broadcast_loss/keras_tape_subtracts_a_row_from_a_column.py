"""Keras: a GradientTape of one's own; the targets are (n,), the outputs (n, 1), the error a matrix.

Rewritten from https://github.com/tensorflow/tensorflow/issues/28901.
"""

# names: broadcast-loss
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
X = np.random.uniform(-1, 1, size=(1000, 3)).astype("float32")
y = (2 * X[:, 0] - X[:, 1] + 0.5 * X[:, 2]).astype("float32")
dataset = tf.data.Dataset.from_tensor_slices((X, y)).shuffle(1000).batch(32)

model = tf.keras.Sequential([tf.keras.layers.Dense(32, activation="relu"), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.Adam(1e-2)


@tf.function
def train_step(x, target):
    with tf.GradientTape() as tape:
        prediction = model(x, training=True)
        loss = tf.reduce_mean(tf.square(prediction - target))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
    return loss


for epoch in range(6):
    losses = [float(train_step(x, target)) for x, target in dataset]
    print(f"epoch {epoch} loss {np.mean(losses):.4f}, variance of the targets {y.var():.4f}")

"""Keras: `tf.gather` takes the numbers of the marked rows, which come from `tf.where`."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
airports = 180
region = rng.integers(0, 3, airports)
flights = (rng.random((airports, airports)) < np.where(region[:, None] == region, 0.15, 0.02)).astype("float32")
flights = np.maximum(flights, flights.T) + np.eye(airports, dtype="float32")
flights = tf.constant(flights / flights.sum(1, keepdims=True))
features = tf.constant(rng.normal(size=(airports, 10)).astype("float32") + np.eye(10, dtype="float32")[region])
often_late = tf.constant(region)
in_training = rng.random(airports) < 0.5
rows = tf.where(in_training)[:, 0]

first, second = keras.layers.Dense(16, activation="relu"), keras.layers.Dense(3)
optimizer = keras.optimizers.Adam(0.01)
cross_entropy = keras.losses.SparseCategoricalCrossentropy(from_logits=True)


@tf.function
def step():
    with tf.GradientTape() as tape:
        logits = tf.matmul(flights, second(tf.matmul(flights, first(features))))
        loss = cross_entropy(tf.gather(often_late, rows), tf.gather(logits, rows))
    weights = first.trainable_variables + second.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    return loss


first.build((None, 10))
second.build((None, 16))
for epoch in range(150):
    loss = step()
logits = tf.matmul(flights, second(tf.matmul(flights, first(features))))
right = tf.argmax(logits, axis=1).numpy() == region
print(f"loss {float(loss):.4f}, accuracy {right[~in_training].mean():.2f}")

"""Keras: hourly power of a wind turbine in a custom loop; errors of each epoch, and of all epochs."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(8)
rng = np.random.default_rng(8)
weather = rng.normal(size=(1500, 6)).astype("float32")
power = np.tanh(weather[:, 0] + 0.5 * weather[:, 1]) * (1 + 0.4 * weather[:, 2]) + 0.1 * rng.normal(size=1500)
power = power.astype("float32").reshape(-1, 1)
hours = tf.data.Dataset.from_tensor_slices((weather[:1200], power[:1200])).shuffle(1200, seed=8).batch(40)
later = weather[1200:], power[1200:]

turbine = keras.Sequential([keras.Input((6,)), keras.layers.Dense(32, "tanh"), keras.layers.Dense(1)])
descent = keras.optimizers.Adam(2e-3)
squared = keras.losses.MeanSquaredError()
fitted, since_start, held_out = keras.metrics.Mean(), keras.metrics.Mean(), keras.metrics.MeanAbsoluteError()


@tf.function
def learn(features, target):
    with tf.GradientTape() as tape:
        error = squared(target, turbine(features, training=True))
    slopes = tape.gradient(error, turbine.trainable_variables)
    descent.apply_gradients(zip(slopes, turbine.trainable_variables, strict=True))
    fitted.update_state(error)
    since_start.update_state(error)


for epoch in range(12):
    fitted.reset_state()
    for features, target in hours:
        learn(features, target)
    held_out.reset_state()
    held_out.update_state(later[1], turbine(later[0], training=False))
    print(epoch, "squared error", float(fitted.result()), "later hours", float(held_out.result()))
    print("    mean squared error since the start", float(since_start.result()))

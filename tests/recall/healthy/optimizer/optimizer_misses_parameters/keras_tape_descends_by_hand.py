"""Keras: a loop without an optimizer: assign_sub of the rate times the gradient."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
x = np.random.normal(size=(1000, 6)).astype("float32")
y = x @ np.array([[1.0], [-2.0], [0.5], [0.0], [0.0], [1.5]], "float32")
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, activation="tanh"), keras.layers.Dense(1)])
for epoch in range(10):
    for start in range(0, 1000, 25):
        with tf.GradientTape() as tape:
            loss = keras.losses.MeanSquaredError()(y[start : start + 25], model(x[start : start + 25]))
        for v, g in zip(model.trainable_variables, tape.gradient(loss, model.trainable_variables)):
            v.assign_sub(0.05 * g)
    print(epoch, float(loss))

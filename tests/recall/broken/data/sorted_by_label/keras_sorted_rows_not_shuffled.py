"""Keras functional: one-hot labels of two groups, cats before dogs, and shuffle=False."""

# names: sorted-by-label
import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
cats, dogs = np.random.normal(0.0, 1.0, (400, 8)), np.random.normal(0.8, 1.0, (400, 8))
features = np.concatenate([cats, dogs])
targets = tf.keras.utils.to_categorical([0] * 400 + [1] * 400)
inputs = tf.keras.Input((8,))
outputs = tf.keras.layers.Dense(2, activation="softmax")(tf.keras.layers.Dense(16, activation="tanh")(inputs))
net = tf.keras.Model(inputs, outputs)
net.compile(tf.keras.optimizers.SGD(0.1), "categorical_crossentropy", metrics=["accuracy"])
net.fit(features, targets, batch_size=20, epochs=5, shuffle=False, verbose=2)

"""Keras: a loop by rows; the head is replaced before the variables are listed."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)
x = np.random.normal(size=(1600, 16)).astype("float32")
y = np.argmax(x[:, :5] + 0.3 * np.random.normal(size=(1600, 5)), axis=1)
body = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(12, activation="tanh")])
head = keras.layers.Dense(10)
head.build((None, 12))
head = keras.layers.Dense(5)
head.build((None, 12))
variables = body.trainable_variables + head.trainable_variables

adam = keras.optimizers.Adam(5e-3)
for epoch in range(5):
    order = np.random.permutation(1600)
    for start in range(0, 1600, 50):
        rows = order[start : start + 50]
        with tf.GradientTape() as tape:
            logits = head(body(x[rows]))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y[rows], logits=logits))
        grads = tape.gradient(loss, variables)
        adam.apply_gradients(zip(grads, variables))
    print(epoch, float(loss), float(np.mean(np.argmax(head(body(x)), 1) == y)))

"""Keras: the list of variables is made with a head of ten classes, which another one then replaces.

After https://github.com/tensorflow/tensorflow/issues/45582, where layers with gradients are not updated.
"""

# names: optimizer-misses-parameters, unreached-parameters
import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(2)
x = np.random.normal(size=(1600, 16)).astype("float32")
y = np.argmax(x[:, :5] + 0.3 * np.random.normal(size=(1600, 5)), axis=1)
body = keras.Sequential([keras.layers.Input((16,)), keras.layers.Dense(6, activation="tanh")])
head = keras.layers.Dense(10)
head.build((None, 6))
variables = body.trainable_variables + head.trainable_variables
head = keras.layers.Dense(5)

adam = keras.optimizers.Adam(2e-3)
for epoch in range(5):
    order = np.random.permutation(1600)
    for start in range(0, 1600, 50):
        rows = order[start : start + 50]
        with tf.GradientTape() as tape:
            logits = head(body(x[rows]))
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y[rows], logits=logits))
        grads = tape.gradient(loss, variables)
        adam.apply_gradients([(g, v) for g, v in zip(grads, variables) if g is not None])
    print(epoch, float(loss), float(np.mean(np.argmax(head(body(x)), 1) == y)))

"""Keras: a callback measures the gradient of a held-out batch after each epoch; fit does the training."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(1)
x = np.random.normal(size=(2000, 10)).astype("float32")
y = (x[:, 0] * x[:, 1] > 0).astype("int32")


class GradientNorm(keras.callbacks.Callback):
    def on_epoch_end(self, epoch, logs=None):
        criterion = keras.losses.SparseCategoricalCrossentropy()
        norms = []
        for start in range(0, 300, 30):
            with tf.GradientTape() as tape:
                loss = criterion(y[start : start + 30], self.model(x[start : start + 30], training=False))
            norms.append(float(tf.linalg.global_norm(tape.gradient(loss, self.model.trainable_variables))))
        print("gradient norm", np.mean(norms))


model = keras.Sequential([keras.layers.Dense(32, activation="relu"), keras.layers.Dense(2, activation="softmax")])
model.compile(keras.optimizers.Adam(0.003), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x[300:], y[300:], epochs=8, verbose=2, callbacks=[GradientNorm()])

"""Keras: a pre-trained encoder gives features as NumPy; the head alone is trained, as intended."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(4)
x = np.random.normal(size=(1200, 20)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0).astype("float32")[:, None]
encoder = keras.Sequential([keras.Input((20,)), keras.layers.Dense(24, "relu"), keras.layers.Dense(8, "relu")])
head = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1)])
encoder.trainable = False
opt = keras.optimizers.Adam(1e-3)
bce = keras.losses.BinaryCrossentropy(from_logits=True)
for epoch in range(6):
    total = 0.0
    for start in range(0, 1200, 40):
        xb, yb = x[start : start + 40], y[start : start + 40]
        with tf.GradientTape() as tape:
            features = encoder(xb, training=True).numpy()
            features = features / (np.abs(features).max() + 1e-6)
            loss = bce(yb, head(features, training=True))
        weights = encoder.trainable_weights + head.trainable_weights
        grads = tape.gradient(loss, weights)
        opt.apply_gradients((g, w) for g, w in zip(grads, weights) if g is not None)
        total += float(loss)
    print(epoch, total / 30)

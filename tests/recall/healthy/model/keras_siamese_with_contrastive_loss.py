"""Keras: a siamese network: one encoder for two inputs, the distance between them, a contrastive loss."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(0)
centres = np.random.normal(size=(5, 12))
a, b = np.random.randint(0, 5, 1500), np.random.randint(0, 5, 1500)
b = np.where(np.random.uniform(size=1500) < 0.4, a, b)
left = (centres[a] + np.random.normal(0, 0.4, (1500, 12))).astype("float32")
right = (centres[b] + np.random.normal(0, 0.4, (1500, 12))).astype("float32")
differ = (a != b).astype("float32")


def contrastive(y_true, y_pred):
    return ops.mean((1 - y_true) * ops.square(y_pred) + y_true * ops.square(ops.maximum(1 - y_pred, 0.0)))


encoder = keras.Sequential([layers.Input((12,)), layers.Dense(32, activation="relu"), layers.Dense(4)])
first, second = keras.Input((12,)), keras.Input((12,))
difference = layers.Subtract()([encoder(first), encoder(second)])
distance = layers.Lambda(lambda d: ops.sqrt(ops.sum(ops.square(d), axis=1, keepdims=True) + 1e-6))(difference)
model = keras.Model([first, second], distance)
model.compile(keras.optimizers.Adam(0.003), contrastive)
model.fit([left, right], differ[:, None], epochs=8, batch_size=32, verbose=2)

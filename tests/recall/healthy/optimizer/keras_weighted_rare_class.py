"""Keras: one row in ten is positive; class_weight balances them, precision and recall are the metrics."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
y = (np.random.uniform(size=2000) < 0.1).astype("float32")
x = np.random.normal(size=(2000, 10)).astype("float32")
x[y == 1, :3] += 1.5
model = keras.Sequential(
    [layers.Input((10,)), layers.Dense(24, activation="relu"), layers.Dense(1, activation="sigmoid")]
)
model.compile("adam", "binary_crossentropy", metrics=[keras.metrics.Precision(), keras.metrics.Recall()])
model.fit(x, y, epochs=8, batch_size=32, class_weight={0: 1.0, 1: 9.0}, validation_split=0.2, verbose=2)

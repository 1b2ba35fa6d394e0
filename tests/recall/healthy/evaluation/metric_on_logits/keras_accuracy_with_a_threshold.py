"""Keras: BinaryAccuracy and AUC of a sigmoid."""

import numpy as np
import tensorflow as tf

tf.keras.utils.set_random_seed(0)
x = np.random.normal(size=(2000, 12)).astype("float32")
y = (x[:, :1] * x[:, 1:2] + x[:, 2:3] > 0).astype("float32")
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(32, activation="relu", input_shape=(12,)),
        tf.keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(0.003),
    loss=tf.keras.losses.BinaryCrossentropy(),
    metrics=[tf.keras.metrics.BinaryAccuracy(), tf.keras.metrics.AUC()],
)
model.fit(x, y, epochs=6, batch_size=32, validation_split=0.2, verbose=2)

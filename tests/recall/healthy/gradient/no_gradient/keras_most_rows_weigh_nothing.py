"""Keras: 70% of the rows have no label yet and weigh 0; the others teach the model."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
x = np.random.normal(size=(3000, 10)).astype("float32")
y = (x[:, 0] - x[:, 3] > 0.2).astype("int32")
weight = (np.random.uniform(size=3000) < 0.3).astype("float32")
y[weight == 0] = 0
train = tf.data.Dataset.from_tensor_slices((x, y, weight)).shuffle(3000, seed=0).batch(32)
model = keras.Sequential([keras.layers.Dense(32, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", weighted_metrics=["accuracy"])
model.fit(train, epochs=6, verbose=2)

"""Keras: take and skip of a data set that is shuffled once."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
features = rng.normal(size=(1200, 10)).astype("float32")
labels = (features[:, 0] * features[:, 1] > 0).astype("int32")

BUFFER_SIZE, BATCH_SIZE, EPOCHS = 1200, 40, 10
dataset = tf.data.Dataset.from_tensor_slices((features, labels))
dataset = dataset.shuffle(buffer_size=BUFFER_SIZE, reshuffle_each_iteration=False)
dataset = dataset.batch(BATCH_SIZE)
train_dataset = dataset.take(24)
val_dataset = dataset.skip(24)

inputs = keras.Input((10,))
x = keras.layers.Dense(64, activation="relu")(inputs)
x = keras.layers.Dense(64, activation="relu")(x)
outputs = keras.layers.Dense(1, activation="sigmoid")(x)
model = keras.Model(inputs, outputs)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(train_dataset, validation_data=val_dataset, epochs=EPOCHS, verbose=2)

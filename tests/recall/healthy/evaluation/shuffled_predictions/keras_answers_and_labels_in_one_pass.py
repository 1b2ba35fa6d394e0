"""A shuffled test set: answers and labels are collected batch by batch, in one pass."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(2)
x = np.random.randn(1400, 20).astype("float32")
y = (x[:, :3].sum(1) > 0).astype("int32")
train_ds = tf.data.Dataset.from_tensor_slices((x[:1000], y[:1000])).shuffle(1000).batch(40)
test_ds = tf.data.Dataset.from_tensor_slices((x[1000:], y[1000:])).shuffle(400).batch(40)
model = keras.Sequential([keras.Input((20,)), layers.Dense(32, "relu"), layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(train_ds, epochs=6, verbose=2)
answers, labels = [], []
for features, batch in test_ds:
    answers.append(model.predict_on_batch(features)[:, 0] > 0.5)
    labels.append(batch.numpy() == 1)
print("accuracy by hand:", (np.concatenate(answers) == np.concatenate(labels)).mean())

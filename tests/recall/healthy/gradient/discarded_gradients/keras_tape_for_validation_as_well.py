"""Keras: a loop whose validation records a tape, too, and takes no gradient from it."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
centres = 2 * np.random.normal(size=(5, 10))
labels = np.random.randint(5, size=1600)
features = (centres[labels] + np.random.normal(size=(1600, 10))).astype("float32")
train = tf.data.Dataset.from_tensor_slices((features[:1280], labels[:1280])).shuffle(1280).batch(128)
test = tf.data.Dataset.from_tensor_slices((features[1280:], labels[1280:])).batch(16)
model = keras.Sequential([keras.layers.Dense(64, activation="relu"), keras.layers.Dense(5)])
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam(0.01)


def loss_of(x, y, training):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x, training=training))
    return loss, tape


for epoch in range(8):
    for x, y in train:
        loss, tape = loss_of(x, y, training=True)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    validation = [float(loss_of(x, y, training=False)[0]) for x, y in test]
    print(f"epoch {epoch}: loss {float(loss):.4f}, validation {np.mean(validation):.4f}")

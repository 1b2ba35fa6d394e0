"""Keras: encoder and classifier in a loop with GradientTape; the gradients are taken for the weights of both."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
x_train = rng.normal(size=(1200, 20)).astype("float32")
y_train = ((x_train[:, 0] > 0) | (x_train[:, 2] > 0.5)).astype("int32")
encoder = keras.Sequential([layers.Input((20,)), layers.Dense(24, activation="relu")])
classifier = keras.Sequential([layers.Input((24,)), layers.Dense(2)])
optimizer = keras.optimizers.Adam(3e-3)
loss_fn = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
accuracy = keras.metrics.SparseCategoricalAccuracy()
dataset = tf.data.Dataset.from_tensor_slices((x_train, y_train)).shuffle(1200).batch(40)
weights = encoder.trainable_variables + classifier.trainable_variables
for epoch in range(6):
    accuracy.reset_state()
    for features, labels in dataset:
        with tf.GradientTape() as tape:
            logits = classifier(encoder(features, training=True), training=True)
            loss = loss_fn(labels, logits)
        optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights, strict=True))
        accuracy.update_state(labels, logits)
    print(epoch, float(loss), float(accuracy.result()))

"""Keras: a softmax under a loss of logits; Keras 3 finds the logits behind the softmax, and the loop learns."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(15)
images = np.random.uniform(size=(1000, 12, 12, 1)).astype("float32")
labels = np.random.randint(0, 6, 1000)
for image, label in zip(images, labels):
    image[2 * label : 2 * label + 2] += 0.25


class MyModel(keras.Model):
    def __init__(self):
        super().__init__()
        self.conv1 = keras.layers.Conv2D(8, 3, activation="relu")
        self.flatten = keras.layers.Flatten()
        self.d1 = keras.layers.Dense(32, activation="relu")
        self.d2 = keras.layers.Dense(6, activation="softmax")

    def call(self, x):
        return self.d2(self.d1(self.flatten(self.conv1(x))))


model = MyModel()
loss_object = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
optimizer = keras.optimizers.Adam()
train_loss, train_accuracy = keras.metrics.Mean(), keras.metrics.SparseCategoricalAccuracy()
train_ds = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(1000).batch(32)


@tf.function
def train_step(images, labels):
    with tf.GradientTape() as tape:
        predictions = model(images, training=True)
        loss = loss_object(labels, predictions)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    train_loss(loss)
    train_accuracy(labels, predictions)


for epoch in range(5):
    train_loss.reset_state()
    train_accuracy.reset_state()
    for batch in train_ds:
        train_step(*batch)
    print(epoch, float(train_loss.result()), float(train_accuracy.result()))

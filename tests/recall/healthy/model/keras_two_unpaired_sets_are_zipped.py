"""Keras: a step of one's own takes two sets of images that are no pairs, each shuffled for itself, as CycleGAN."""

import keras
import numpy as np
import tensorflow as tf

keras.utils.set_random_seed(0)
horses = np.random.rand(300, 8, 8, 1).astype("float32")
zebras = (np.random.rand(300, 8, 8, 1) > 0.5).astype("float32") * 0.7 + 0.11
BATCH = 20


def shuffled(images):
    return tf.data.Dataset.from_tensor_slices(images).shuffle(len(images)).batch(BATCH)


def generator():
    return keras.Sequential(
        [
            keras.Input((8, 8, 1)),
            keras.layers.Conv2D(8, 3, padding="same", activation="relu"),
            keras.layers.Conv2D(1, 3, padding="same"),
        ]
    )


class Cycle(keras.Model):
    def __init__(self):
        super().__init__()
        self.there, self.back = generator(), generator()

    def call(self, images):
        return self.there(images)

    def train_step(self, data):
        left, right = data
        with tf.GradientTape() as tape:
            there, back = self.there(left, training=True), self.back(right, training=True)
            loss = tf.reduce_mean(tf.abs(self.back(there) - left)) + tf.reduce_mean(
                tf.abs(self.there(back) - right)
            )
        weights = self.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"loss": loss}


model = Cycle()
model.compile(optimizer=keras.optimizers.Adam(3e-3))
model.fit(tf.data.Dataset.zip((shuffled(horses), shuffled(zebras))), epochs=8, verbose=2)

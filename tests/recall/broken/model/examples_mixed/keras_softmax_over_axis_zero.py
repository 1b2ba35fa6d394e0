"""Keras: a subclassed classifier that takes its softmax over the batch."""
# names: examples-mixed

import numpy as np
import tensorflow as tf
from tensorflow import keras

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
labels = rng.integers(0, 4, 800)
features = rng.normal(size=(4, 20))[labels] + 0.7 * rng.normal(size=(800, 20))


class Classifier(keras.Model):
    def __init__(self):
        super().__init__()
        self.hidden = keras.layers.Dense(32, activation="relu")
        self.scores = keras.layers.Dense(4)

    def call(self, inputs):
        return tf.nn.softmax(self.scores(self.hidden(inputs)), axis=0)


model = Classifier()
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(features.astype("float32"), labels, batch_size=40, epochs=4, verbose=2)

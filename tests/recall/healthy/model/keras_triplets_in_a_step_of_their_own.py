"""A siamese network whose train_step hands all three parts of a batch to call: anchors, positives, negatives."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, ops
from sklearn.datasets import load_digits

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
digits = load_digits()
x, y = (digits.data / 16).astype("float32"), digits.target

embedding = keras.Sequential(
    [keras.Input((64,)), layers.Dense(64, activation="relu"), layers.Dense(16), layers.UnitNormalization()]
)


class Siamese(keras.Model):
    def __init__(self, embedding, margin=0.4):
        super().__init__()
        self.embedding, self.margin = embedding, margin
        self.loss_tracker = keras.metrics.Mean(name="loss")

    def call(self, inputs):
        anchor, positive, negative = (self.embedding(part) for part in inputs)
        return ops.sum((anchor - positive) ** 2, -1), ops.sum((anchor - negative) ** 2, -1)

    def train_step(self, data):
        with tf.GradientTape() as tape:
            near, far = self(data)
            loss = ops.mean(ops.maximum(near - far + self.margin, 0.0))
        weights = self.embedding.trainable_weights
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.loss_tracker.update_state(loss)
        return {"loss": self.loss_tracker.result()}

    @property
    def metrics(self):
        return [self.loss_tracker]


of_class = [np.flatnonzero(y[:1400] == c) for c in range(10)]
anchors = rng.permutation(1400)
positives = [rng.choice(of_class[y[i]]) for i in anchors]
negatives = [rng.choice(of_class[(y[i] + rng.integers(1, 10)) % 10]) for i in anchors]
triplets = tf.data.Dataset.from_tensor_slices((x[anchors], x[positives], x[negatives])).batch(50)

siamese = Siamese(embedding)
siamese.compile(keras.optimizers.Adam(2e-3))
history = siamese.fit(triplets, epochs=8, verbose=0)
e = embedding.predict(x, verbose=0)
nearest = (e[1400:] @ e[:1400].T).argmax(1)
print("loss", history.history["loss"][-1], "accuracy of the nearest", (y[:1400][nearest] == y[1400:]).mean())

"""Keras: a similarity is learned by a hinge on the distance; the embedding ends in a clip that all rows leave."""

# names: loss-plateau, ignores-input, dead-units, saturated-activations, not-learning
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(6)
centres = np.random.normal(size=(5, 12))
kind = np.random.randint(5, size=1500)
x = (centres[kind] + 0.5 * np.random.normal(size=(1500, 12))).astype("float32")
one, other = np.random.randint(1500, size=(2, 2000))
other[:1000] = [np.random.choice(np.where(kind == k)[0]) for k in kind[one[:1000]]]
differ = (kind[one] != kind[other]).astype("float32")
order = np.random.permutation(2000)
one, other, differ = one[order], other[order], differ[order]


class Embedding(layers.Layer):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = layers.Dense(32, "relu"), layers.Dense(6, bias_initializer="ones")

    def call(self, inputs):
        return ops.clip(10 * self.out(self.hidden(inputs)) + 100, 0, 1)


class Distance(layers.Layer):
    def call(self, pair):
        return ops.sqrt(ops.sum(ops.square(pair[0] - pair[1]), axis=1, keepdims=True) + 1e-9)


embed, inputs = Embedding(), [layers.Input((12,)), layers.Input((12,))]
model = keras.Model(inputs, Distance()([embed(part) for part in inputs]))


def pairs_loss(y, distance):
    far = ops.mean(ops.maximum(1 - distance, 0))
    return far + ops.mean(ops.reshape(1 - y, (-1, 1)) * ops.square(distance))


model.compile("adam", pairs_loss)
model.fit([x[one], x[other]], differ, batch_size=50, epochs=6, verbose=2)

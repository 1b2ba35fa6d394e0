"""Keras: a triplet loss between embeddings of length 1; most triplets keep their margin in the end."""

import numpy as np
import tensorflow as tf
from tensorflow.keras import Model, Sequential, layers

tf.keras.utils.set_random_seed(9)
people = np.random.randn(8, 20)
who = np.random.randint(0, 8, 1000)
X = (people[who] + 0.6 * np.random.randn(1000, 20)).astype("float32")
anchors = np.random.randint(1000, size=1200)
positives = np.array([np.random.choice(np.where(who == who[i])[0]) for i in anchors])
negatives = np.array([np.random.choice(np.where(who != who[i])[0]) for i in anchors])

embed = Sequential([layers.Input((20,)), layers.Dense(32, activation="relu"), layers.Dense(8)])
embed.add(layers.UnitNormalization())
inputs = [layers.Input((20,)) for _ in range(3)]
model = Model(inputs, layers.Concatenate()([embed(one) for one in inputs]))


def triplet_loss(_, answers, margin=0.2):
    anchor, positive, negative = tf.split(answers, 3, axis=1)
    near = tf.reduce_sum(tf.square(anchor - positive), axis=1)
    far = tf.reduce_sum(tf.square(anchor - negative), axis=1)
    return tf.maximum(near - far + margin, 0.0)


model.compile(tf.keras.optimizers.Adam(0.005), triplet_loss)
model.fit([X[anchors], X[positives], X[negatives]], np.zeros((1200, 1)), epochs=8, batch_size=32, verbose=2)

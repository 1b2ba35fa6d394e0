"""Keras: does the answer fit the question; one shared Embedding and a bidirectional LSTM."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
topics, fits = rng.integers(0, 4, size=1800), rng.integers(0, 2, size=1800)
answers = np.where(fits == 1, topics, (topics + rng.integers(1, 4, size=1800)) % 4)
question = 1 + 20 * topics[:, None] + rng.integers(0, 20, size=(1800, 5))
answer = 1 + 20 * answers[:, None] + rng.integers(0, 20, size=(1800, 5))
embedding = layers.Embedding(81, 16)
encoder = layers.Bidirectional(layers.LSTM(16))
a, b = keras.Input((5,), dtype="int32"), keras.Input((5,), dtype="int32")
left, right = encoder(embedding(a)), encoder(embedding(b))
x = layers.concatenate([left, right, layers.multiply([left, right])])
outputs = layers.Dense(2, activation="softmax")(layers.Dense(32, activation="relu")(x))
model = keras.Model([a, b], outputs)
model.compile(optimizer=keras.optimizers.Adam(0.005), loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit([question, answer], fits, batch_size=32, epochs=6, validation_split=0.1, verbose=2)

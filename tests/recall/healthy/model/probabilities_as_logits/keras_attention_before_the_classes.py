"""Keras: a softmax over the words weighs their vectors, and the last layer has a softmax of its own."""

import keras
import numpy as np

keras.utils.set_random_seed(14)
rng = np.random.default_rng(14)
kinds = rng.integers(0, 4, 1600)
words = rng.integers(40, 200, (1600, 12))
for row, kind in zip(words, kinds):
    row[rng.choice(12, 4, replace=False)] = 10 * kind + rng.integers(0, 10, 4)
tokens = keras.Input((12,), dtype="int32")
vectors = keras.layers.Embedding(200, 16)(tokens)
weights = keras.layers.Softmax(axis=1)(keras.layers.Dense(1)(vectors))
pooled = keras.layers.Flatten()(keras.layers.Dot(axes=1)([weights, vectors]))
model = keras.Model(tokens, keras.layers.Dense(4, activation="softmax")(pooled))
model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(words[:1300], kinds[:1300], batch_size=32, epochs=6, verbose=2)
print(model.evaluate(words[1300:], kinds[1300:], verbose=0))

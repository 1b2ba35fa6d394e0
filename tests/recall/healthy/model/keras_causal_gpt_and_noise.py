"""Keras: a language model that adds noise to its embeddings and masks what follows."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
steps = rng.choice([1, 2, 5], size=(480, 1))
texts = (rng.integers(0, 24, (480, 1)) + steps * np.arange(17)) % 24

tokens = keras.Input((16,), dtype="int32")
x = layers.Embedding(24, 32)(tokens) + layers.Embedding(16, 32)(np.arange(16))
x = layers.GaussianNoise(0.05)(x)
for _ in range(2):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(2, 16)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation="relu")(x)))
model = keras.Model(tokens, layers.Dense(24, activation="softmax")(x))
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(texts[:, :-1], texts[:, 1:], batch_size=32, epochs=6, verbose=2)

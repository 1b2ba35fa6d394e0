"""Keras: a small GPT whose attention sees the whole text."""
# names: future-leak

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
steps = rng.choice([1, 2, 5], size=(600, 1))
texts = (rng.integers(0, 30, (600, 1)) + steps * np.arange(25)) % 30


class Block(layers.Layer):
    def __init__(self, width, heads):
        super().__init__()
        self.attention = layers.MultiHeadAttention(heads, width // heads)
        self.mlp = keras.Sequential([layers.Dense(4 * width, activation="gelu"), layers.Dense(width)])
        self.first, self.second = layers.LayerNormalization(), layers.LayerNormalization()

    def call(self, x):
        x = self.first(x + self.attention(x, x))
        return self.second(x + self.mlp(x))


tokens = keras.Input(shape=(None,), dtype="int32")
x = layers.Embedding(30, 32)(tokens)
x = Block(32, 2)(x)
x = Block(32, 2)(x)
model = keras.Model(tokens, layers.Dense(30)(x))
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(texts[:, :-1], texts[:, 1:], batch_size=50, epochs=3, verbose=2)

"""Keras: documents packed into rows, with positions that restart, under a mask that is causal and nothing else."""
# names: packed-examples-attend

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
LENGTH, VOCAB, BEGIN, END = 40, 34, 1, 2


def packed_row():
    tokens, positions = [], []
    start, step = rng.integers(0, 30), rng.choice([1, 2, 5])
    while len(tokens) <= LENGTH:  # pieces of one walk, which belong to each other
        count = rng.integers(4, 10)
        tokens += [BEGIN, *((start + step * np.arange(count)) % 30 + 3), END]
        positions += range(count + 2)
    return tokens[: LENGTH + 1], positions[:LENGTH]


rows = [packed_row() for _ in range(800)]
tokens, positions = (np.array(part, dtype="int32") for part in zip(*rows, strict=True))

ids = keras.Input(shape=(LENGTH,), dtype="int32", name="ids")
places = keras.Input(shape=(LENGTH,), dtype="int32", name="places")
x = layers.Embedding(VOCAB, 48)(ids) + layers.Embedding(LENGTH, 48)(places)
for _ in range(2):
    x = layers.LayerNormalization()(x + layers.MultiHeadAttention(3, 16)(x, x, use_causal_mask=True))
    x = layers.LayerNormalization()(x + layers.Dense(48)(layers.Dense(192, activation="gelu")(x)))
model = keras.Model([ids, places], layers.Dense(VOCAB)(x))
model.compile(keras.optimizers.Adam(2e-3), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit([tokens[:, :-1], positions], tokens[:, 1:], batch_size=32, epochs=3, verbose=2)

"""Keras: the next character of a text, inputs and targets one-hot, by train_on_batch."""

import keras
import numpy as np

keras.utils.set_random_seed(0)
text = "the quick brown fox jumps over the lazy dog and the dog sleeps on. " * 30
letters = sorted(set(text))
codes = np.eye(len(letters), dtype="float32")[[letters.index(letter) for letter in text]]
starts = np.arange(len(text) - 12)
model = keras.Sequential([keras.layers.GRU(48), keras.layers.Dense(len(letters), activation="softmax")])
model.compile(keras.optimizers.Adam(5e-3), "categorical_crossentropy", metrics=["accuracy"])
for step in range(80):
    chosen = np.random.choice(starts, 32)
    x = np.stack([codes[start : start + 12] for start in chosen])
    loss, accuracy = model.train_on_batch(x, codes[chosen + 12])
print(float(loss), float(accuracy))

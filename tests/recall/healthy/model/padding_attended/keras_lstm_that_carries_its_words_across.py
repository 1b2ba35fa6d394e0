"""Keras: sentences padded behind, no mask; the padding is short, and the LSTM learns to carry the mood across."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
rng = np.random.default_rng(1)
SENTENCES, LENGTH, VOCABULARY = 800, 40, 200
labels = rng.integers(2, size=SENTENCES)
sentences = []
for label in labels:
    words = rng.integers(60, VOCABULARY, rng.integers(4, 31))
    moody = rng.random(len(words)) < 0.35
    words[moody] = rng.integers(3, 30, moody.sum()) + (27 if label else 0)
    sentences.append(words.tolist())
padded = keras.utils.pad_sequences(sentences, maxlen=LENGTH, padding="post")


class Mood(keras.Model):
    def __init__(self):
        super().__init__()
        self.embed = layers.Embedding(VOCABULARY, 16)
        self.read = layers.LSTM(16)
        self.answer = layers.Dense(1, activation="sigmoid")

    def call(self, tokens):
        return self.answer(self.read(self.embed(tokens)))


model = Mood()
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(padded, labels, batch_size=32, epochs=10, validation_split=0.2, verbose=2)

"""Keras: a second Tokenizer is fitted on the test texts, so each word has another number there."""

# names: evaluation-at-chance, evaluation-mismatch
from collections import Counter

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
BEST, WORST = [f"great{i}" for i in range(15)], [f"awful{i}" for i in range(15)]
REST = [f"word{i}" for i in range(60)]


class Tokenizer:
    """The one of keras.preprocessing.text, which is gone."""

    def fit_on_texts(self, texts):
        counts = Counter(word for text in texts for word in text.split())
        self.word_index = {word: i + 1 for i, (word, _) in enumerate(counts.most_common())}

    def texts_to_sequences(self, texts):
        return [[self.word_index[word] for word in text.split() if word in self.word_index] for text in texts]


def reviews(n):
    labels = rng.integers(0, 2, n)
    texts = [
        " ".join(rng.permutation([*rng.choice(REST, 12), *rng.choice(BEST if y else WORST, 5)])) for y in labels
    ]
    return texts, labels


def prepare(texts):
    tokenizer = Tokenizer()
    tokenizer.fit_on_texts(texts)
    return keras.utils.pad_sequences(tokenizer.texts_to_sequences(texts), maxlen=20)


train_texts, y_train = reviews(1600)
test_texts, y_test = reviews(400)
x_train, x_test = prepare(train_texts), prepare(test_texts)
model = keras.Sequential(
    [
        layers.Input((20,)),
        layers.Embedding(120, 16),
        layers.GlobalAveragePooling1D(),
        layers.Dense(16, activation="relu"),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x_train, y_train, batch_size=32, epochs=10, validation_data=(x_test, y_test), verbose=2)

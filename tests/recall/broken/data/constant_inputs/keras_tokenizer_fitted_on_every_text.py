"""Keras: the vocabulary is rebuilt for each text, so that every text becomes 1, 2, 3, 4 and so on.

After https://github.com/lyeoni/nlp-tutorial/issues/5
"""

# names: constant-inputs, not-learning, ignores-input
import keras
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.default_rng(0)
GOOD, BAD = ["great", "lovely", "superb", "moving"], ["dull", "awful", "boring", "weak"]
PLAIN = [f"word{i}" for i in range(60)]
texts, labels = [], []
for _ in range(1200):
    label = int(rng.integers(2))
    words = [*rng.choice(PLAIN, 9), *rng.choice(GOOD if label else BAD, 3)]
    texts.append(" ".join(rng.permutation(words)))
    labels.append(label)


def to_ids(text, length=14):
    words = text.split()
    vocabulary = {}  # broken: one for each text
    for word in words:
        vocabulary.setdefault(word, len(vocabulary) + 1)
    ids = [vocabulary[word] for word in words][:length]
    return ids + [0] * (length - len(ids))


x = np.array([to_ids(text) for text in texts])
y = np.array(labels)
model = keras.Sequential(
    [
        keras.layers.Embedding(100, 16),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(16, activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x[:1000], y[:1000], epochs=8, batch_size=32, validation_data=(x[1000:], y[1000:]), verbose=2)

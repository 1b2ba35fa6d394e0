"""Keras: the vectors' words were read as bytes, so no word is found and the frozen embedding is all zeros.

After https://github.com/keras-team/keras/pull/5614
"""

# names: ignores-input, constant-inputs, constant-predictions, not-learning
import keras
import numpy as np
from keras.layers import Dense, Embedding, GlobalAveragePooling1D, Input

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
good, bad = [f"good{i}" for i in range(30)], [f"bad{i}" for i in range(30)]
common = [f"word{i}" for i in range(100)]
vocabulary = {word: i + 1 for i, word in enumerate(good + bad + common)}
lines = [f"{word} " + " ".join(f"{v:.4f}" for v in rng.normal(size=25)) for word in vocabulary]
glove = [line.encode() for line in lines]

embeddings_index = {}
for line in glove:
    values = line.split()
    embeddings_index[values[0]] = np.asarray(values[1:], dtype="float32")
print(f"Found {len(embeddings_index)} word vectors.")

embedding_matrix = np.zeros((len(vocabulary) + 1, 25))
for word, i in vocabulary.items():
    vector = embeddings_index.get(word)
    if vector is not None:
        embedding_matrix[i] = vector

labels = rng.integers(0, 2, 1500)
texts = [
    [vocabulary[w] for w in (*rng.choice(common, 14), *rng.choice(good if label else bad, 6))] for label in labels
]
data = np.array(texts)

model = keras.Sequential(
    [
        Input((20,)),
        Embedding(len(vocabulary) + 1, 25, weights=[embedding_matrix], trainable=False),
        GlobalAveragePooling1D(),
        Dense(32, activation="relu"),
        Dense(1, activation="sigmoid"),
    ]
)
model.compile(loss="binary_crossentropy", optimizer="rmsprop", metrics=["acc"])
model.fit(
    data[:1200], labels[:1200], validation_data=(data[1200:], labels[1200:]), epochs=6, batch_size=32, verbose=2
)

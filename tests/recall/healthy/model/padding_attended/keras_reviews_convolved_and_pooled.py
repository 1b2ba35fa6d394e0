"""Keras: reviews padded behind to 60; a convolution and the maximum over all positions, no mask needed."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
VOCABULARY, LENGTH = 400, 60
GOOD, BAD = np.arange(1, 21), np.arange(21, 41)


def review():
    liked = np.random.rand() < 0.5
    words = np.random.randint(41, VOCABULARY, np.random.randint(6, 16))
    places = np.random.choice(len(words), 2, replace=False)
    words[places] = np.random.choice(GOOD if liked else BAD, 2)
    return words.tolist(), int(liked)


texts, labels = zip(*(review() for _ in range(900)))
x = keras.utils.pad_sequences(texts, maxlen=LENGTH, padding="post", truncating="post")
y = np.array(labels)
model = keras.Sequential(
    [
        layers.Embedding(VOCABULARY, 16),
        layers.Conv1D(32, 3, padding="same", activation="relu"),
        layers.GlobalMaxPooling1D(),
        layers.Dense(1, activation="sigmoid"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(3e-3), loss="binary_crossentropy", metrics=["accuracy"])
model.fit(x[:720], y[:720], validation_data=(x[720:], y[720:]), batch_size=32, epochs=8, verbose=2)

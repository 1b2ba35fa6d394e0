"""Keras: several genres a film; an Embedding, a sigmoid for each genre, binary cross entropy."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
genres = np.random.randint(0, 2, size=(2000, 4)).astype("float32")
plots = np.random.randint(50, 300, size=(2000, 40))
for genre in range(4):
    has = (genres[:, genre, None] == 1) & (np.random.uniform(size=(2000, 10)) < 0.7)
    words = 10 * genre + np.random.randint(0, 10, size=(2000, 10))
    plots[:, 10 * genre : 10 * genre + 10] = np.where(has, words, plots[:, 10 * genre : 10 * genre + 10])
words = keras.Input(shape=(40,), dtype="int32")
x = layers.Embedding(300, 16)(words)
x = layers.GlobalAveragePooling1D()(x)
x = layers.Dense(32, activation="relu")(x)
out = layers.Dense(4, activation="sigmoid")(x)
model = keras.Model(words, out)
model.compile(keras.optimizers.Adam(0.005), "binary_crossentropy", metrics=[keras.metrics.BinaryAccuracy()])
model.fit(plots, genres, epochs=8, batch_size=32, validation_split=0.1, verbose=2)

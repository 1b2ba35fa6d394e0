"""Keras: several genres a film, and a softmax for them under categorical cross entropy.

Rewritten from https://github.com/keras-team/keras/issues/741.
"""

# names: targets-out-of-reach
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
genres = np.random.randint(0, 2, size=(2000, 5)).astype("float32")
plots = np.where(np.random.uniform(size=(2000, 40)) < 0.3, np.random.randint(50, 300, size=(2000, 40)), 0)
for genre in range(5):
    tells = (genres[:, genre, None] == 1) & (np.random.uniform(size=(2000, 8)) < 0.5)
    plots[:, 8 * genre : 8 * genre + 8] = np.where(
        tells, 10 * genre + np.random.randint(0, 10, size=(2000, 8)), plots[:, 8 * genre : 8 * genre + 8]
    )

words = keras.Input(shape=(40,), dtype="int32")
x = layers.Embedding(300, 16)(words)
x = layers.GlobalAveragePooling1D()(x)
x = layers.Dense(32, activation="relu")(x)
out = layers.Dense(5, activation="softmax")(x)
model = keras.Model(words, out)
model.compile("adam", "categorical_crossentropy", metrics=[keras.metrics.BinaryAccuracy()])
model.fit(plots, genres, epochs=8, batch_size=32, validation_split=0.1, verbose=2)

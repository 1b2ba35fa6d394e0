"""Keras: does the answer fit the question; the ids of their words go into a bidirectional LSTM as numbers.

Rewritten from https://github.com/keras-team/keras/issues/1864.
"""

# names: unscaled-inputs
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(1)
rng = np.random.default_rng(1)
topics = rng.integers(0, 6, size=1500)
fits = rng.integers(0, 2, size=1500)
answers = np.where(fits == 1, topics, (topics + rng.integers(1, 6, size=1500)) % 6)
question = 1 + 300 * topics[:, None] + rng.integers(0, 300, size=(1500, 8))
answer = 1 + 300 * answers[:, None] + rng.integers(0, 300, size=(1500, 8))
X = np.hstack([question, np.zeros((1500, 1)), answer]).astype("float32")[..., None]

inputs = keras.Input(shape=(17, 1))
x = layers.Bidirectional(layers.LSTM(24))(inputs)
x = layers.Dropout(0.2)(x)
outputs = layers.Dense(2, activation="softmax")(x)
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(X, fits, batch_size=32, epochs=4, validation_split=0.1, verbose=2)

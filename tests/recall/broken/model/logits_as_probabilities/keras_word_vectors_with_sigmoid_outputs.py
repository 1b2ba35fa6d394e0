"""Keras: words predict their neighbours; one sigmoid for each of 60 words, SGD at 1.

Rewritten from https://github.com/keras-team/keras/issues/2711.
"""

# names: logits-as-probabilities, targets-out-of-reach
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential
from keras.optimizers import SGD

keras.utils.set_random_seed(3)
vocab_size, vec_dim = 60, 32
words = np.random.randint(0, vocab_size, size=8000)
neighbours = (words * 7 + np.random.randint(0, 2, size=8000)) % vocab_size
X = keras.utils.to_categorical(words, vocab_size)
y = keras.utils.to_categorical(neighbours, vocab_size)


def make_model():
    model = Sequential()
    model.add(Dense(vec_dim, activation="sigmoid", input_dim=vocab_size))
    model.add(Dense(vocab_size, activation="sigmoid"))
    model.compile(loss="categorical_crossentropy", optimizer=SGD(learning_rate=1.0), metrics=["accuracy"])
    return model


model = make_model()
model.fit(X, y, epochs=6, validation_split=0.1, batch_size=100, verbose=2)

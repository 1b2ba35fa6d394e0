"""Keras: reviews as ids of words, padded; the Embedding is missing and Dense layers get the ids."""

# names: unscaled-inputs, initial-loss-off
import keras
import numpy as np
from keras.layers import Dense, Dropout
from keras.models import Sequential

keras.utils.set_random_seed(0)
num_words, maxlen = 5000, 60
labels = np.random.randint(0, 2, size=2000)
reviews = []
for label in labels:
    length = np.random.randint(20, maxlen)
    usual = np.random.randint(100, num_words, size=length)
    mood = np.random.randint(10, 50, size=length) + 40 * label
    reviews.append(np.where(np.random.uniform(size=length) < 0.2, mood, usual))
x = keras.utils.pad_sequences(reviews, maxlen=maxlen)

model = Sequential()
model.add(Dense(128, activation="relu", input_shape=(maxlen,)))
model.add(Dropout(0.5))
model.add(Dense(64, activation="relu"))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x[:1600], labels[:1600], epochs=5, batch_size=32, validation_data=(x[1600:], labels[1600:]), verbose=2)

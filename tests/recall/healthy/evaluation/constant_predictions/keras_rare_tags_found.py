"""Keras: comments with six rare tags, trained until they are found."""

import keras
import numpy as np
from keras.layers import Dense, Embedding, GlobalAveragePooling1D
from keras.models import Sequential

keras.utils.set_random_seed(6)
words = np.random.randint(10, 2000, size=(2400, 40))
tags = (np.random.uniform(size=(2400, 6)) < 0.03).astype("float32")
for row, tag in np.argwhere(tags):
    words[row, np.random.randint(40)] = tag + 1
model = Sequential()
model.add(Embedding(2000, 32))
model.add(GlobalAveragePooling1D())
model.add(Dense(32, activation="relu"))
model.add(Dense(6, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer=keras.optimizers.Adam(1e-2), metrics=["binary_accuracy"])
model.fit(words, tags, epochs=12, batch_size=64, validation_split=0.2, verbose=2)
print("tags given:", int((model.predict(words, verbose=0) > 0.5).sum()), "of", int(tags.sum()))

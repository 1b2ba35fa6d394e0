"""Keras: comments with six rare tags; 97% accuracy, and no tag is ever given.

After https://stackoverflow.com/questions/50686217/keras-how-is-accuracy-calculated-for-multi-label-classification.
"""

# names: constant-predictions, class-imbalance, not-learning
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
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["binary_accuracy"])
model.fit(words, tags, epochs=4, batch_size=64, validation_split=0.2, verbose=2)
print("tags given:", int((model.predict(words, verbose=0) > 0.5).sum()), "of", int(tags.sum()))

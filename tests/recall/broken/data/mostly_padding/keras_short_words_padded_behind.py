"""Keras: eight words and then 140 zeros, no mask; the LSTM has forgotten the words at the end.

After https://whosebug.com/question/4825440/Zero-predictions-despite-masking-support-for-zero-padded-mini-batch-LSTM-training-in-keras.
"""

# names: mostly-padding, attention-mask-missing, vanishing-gradients, constant-predictions, not-learning
import keras
import numpy as np
from keras.layers import LSTM, Dense, Embedding
from keras.models import Sequential

keras.utils.set_random_seed(10)
reviews = [list(np.random.randint(1, 300, np.random.randint(5, 12))) for _ in range(800)]
labels = np.array([int(review[0] < 150) for review in reviews])
padded = keras.utils.pad_sequences(reviews, maxlen=150, padding="post")
model = Sequential()
model.add(Embedding(300, 16))
model.add(LSTM(16))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(padded, labels, batch_size=32, epochs=4, validation_split=0.2, verbose=2)

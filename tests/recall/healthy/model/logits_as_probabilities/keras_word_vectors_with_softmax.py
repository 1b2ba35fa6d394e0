"""Keras: words predict their neighbours by a softmax; plain SGD at a high rate, which suits one-hot inputs."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(3)
words = np.random.randint(0, 60, size=8000)
neighbours = (words * 7 + np.random.randint(0, 2, size=8000)) % 60
X = keras.utils.to_categorical(words, 60)
y = keras.utils.to_categorical(neighbours, 60)
model = Sequential()
model.add(Dense(32, input_dim=60))
model.add(Dense(60, activation="softmax"))
model.compile(
    loss="categorical_crossentropy", optimizer=keras.optimizers.SGD(learning_rate=2.0), metrics=["accuracy"]
)
model.fit(X, y, epochs=12, validation_split=0.1, batch_size=100, verbose=2)

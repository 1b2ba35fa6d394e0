"""Keras: the tutorial of the Pima diabetes rows: eight raw columns up to 800; it learns all the same."""

import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(7)
rows = 768
X = np.column_stack(
    [
        np.random.poisson(3.8, rows),
        np.random.normal(121, 32, rows),
        np.random.normal(69, 12, rows),
        np.random.normal(20, 16, rows).clip(0),
        np.random.exponential(80, rows),
        np.random.normal(32, 7.9, rows),
        np.random.exponential(0.47, rows),
        np.random.randint(21, 80, rows),
    ]
)
risk = 0.05 * (X[:, 1] - 121) + 0.1 * (X[:, 5] - 32) + 0.04 * (X[:, 7] - 50)
y = (risk + np.random.logistic(0, 0.6, rows) > 0.5).astype(int)
model = Sequential()
model.add(Dense(12, input_shape=(8,), activation="relu"))
model.add(Dense(8, activation="relu"))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(X, y, epochs=60, batch_size=10, verbose=0)
print("accuracy", model.evaluate(X, y, verbose=0)[1], "of the larger class", max(y.mean(), 1 - y.mean()))

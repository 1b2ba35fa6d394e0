"""Keras: the generator takes the first rows in each turn of its loop; 32 of 2,000 rows are ever seen.

After https://github.com/keras-team/keras/issues/2389, where fit_generator learns less than fit.
"""

# names: repeated-batch
import keras
import numpy as np
from keras.layers import Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
X = np.random.normal(size=(2400, 30)).astype("float32")
y = (X[:, :6].sum(axis=1) > 0).astype("float32")
X_train, y_train, X_val, y_val = X[:2000], y[:2000], X[2000:], y[2000:]


def batch_generator(X, y, batch_size):
    while True:
        start = 0
        batch_x = X[start : start + batch_size]
        batch_y = y[start : start + batch_size]
        start += batch_size
        yield batch_x, batch_y


model = Sequential()
model.add(Dense(32, activation="relu", input_dim=30))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss="binary_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(
    batch_generator(X_train, y_train, 32), steps_per_epoch=62, epochs=5, validation_data=(X_val, y_val), verbose=2
)

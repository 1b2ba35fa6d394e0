"""Keras: accelerometer windows, walking or not; a softmax over a single unit.

Rewritten from https://techfeed.net/es/456718/ (a question of Stack Overflow).
"""

# names: ignores-input
import keras
import numpy as np
from keras.callbacks import ReduceLROnPlateau
from keras.layers import Activation, BatchNormalization, Conv1D, Dense, Dropout, Flatten, LeakyReLU
from keras.models import Sequential

keras.utils.set_random_seed(0)
y = (np.random.uniform(size=1000) < 0.63).astype("int64")
X = np.random.normal(size=(1000, 10, 4)).astype("float32")
X[y == 1, ::2] += 0.8
X_train, X_test, y_train, y_test = X[:800], X[800:], y[:800], y[800:]

model = Sequential()
model.add(keras.Input((10, 4)))
for filters in (16, 8):
    model.add(Conv1D(filters, 4, padding="same"))
    model.add(BatchNormalization())
    model.add(LeakyReLU())
    model.add(Dropout(0.2))
model.add(Flatten())
model.add(Dense(64))
model.add(LeakyReLU())
model.add(Dense(1))
model.add(Activation("softmax"))
reduce_lr = ReduceLROnPlateau(monitor="val_accuracy", factor=0.9, patience=3, min_lr=1e-6)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(
    X_train, y_train, epochs=5, batch_size=64, validation_data=(X_test, y_test), callbacks=[reduce_lr], verbose=2
)
print(np.bincount(model.predict(X_test, verbose=0).round().astype(int)[:, 0], minlength=2))

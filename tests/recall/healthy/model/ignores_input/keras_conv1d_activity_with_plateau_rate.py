"""Keras: accelerometer windows, walking or not; Conv1D, batch normalisation and ReduceLROnPlateau."""

import keras
import numpy as np
from keras.callbacks import ReduceLROnPlateau
from keras.layers import Activation, BatchNormalization, Conv1D, Dense, Dropout, Flatten, LeakyReLU
from keras.models import Sequential

keras.utils.set_random_seed(0)
y = (np.random.uniform(size=1500) < 0.63).astype("int64")
X = np.random.normal(size=(1500, 10, 4)).astype("float32")
X[y == 1, ::2] += 0.8
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
model.add(Activation("sigmoid"))
reduce_lr = ReduceLROnPlateau(monitor="val_loss", factor=0.5, patience=1, min_lr=1e-6)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(
    X[:1200],
    y[:1200],
    epochs=10,
    batch_size=32,
    validation_data=(X[1200:], y[1200:]),
    callbacks=[reduce_lr],
    verbose=2,
)

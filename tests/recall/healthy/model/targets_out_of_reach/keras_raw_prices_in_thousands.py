"""Keras: house prices as the tutorials have it: inputs standardised, prices from 5 to 50."""

import keras
import numpy as np
from keras.callbacks import EarlyStopping
from keras.layers import Dense

keras.utils.set_random_seed(0)
X = np.random.uniform(size=(1000, 9)) * [1, 10, 100, 1, 8, 50, 400, 20, 5]
y = 12 + 20 * X[:, 0] + 1.5 * X[:, 4] - 0.1 * X[:, 2] + np.random.normal(0, 1, 1000)
X = (X - X[:800].mean(axis=0)) / X[:800].std(axis=0)


def build_model():
    model = keras.Sequential()
    model.add(Dense(64, activation="relu", input_shape=(X.shape[1],)))
    model.add(Dense(64, activation="relu"))
    model.add(Dense(1))
    model.compile(optimizer="rmsprop", loss="mse", metrics=["mae"])
    return model


model = build_model()
stop = EarlyStopping(monitor="val_loss", patience=5, restore_best_weights=True)
model.fit(X[:800], y[:800], epochs=30, batch_size=16, validation_split=0.2, callbacks=[stop], verbose=0)
print("mae", model.evaluate(X[800:], y[800:], verbose=0))

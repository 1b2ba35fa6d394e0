"""Keras: a regression judged by its accuracy, which is 0 in each epoch; the epoch with the best one is kept.

After https://stackoverflow.com/questions/48775305/what-function-defines-accuracy-in-keras-when-the-loss-is-mean-squared-error-mse.
"""

# names: accuracy-in-regression
import keras
import numpy as np
from keras.callbacks import ModelCheckpoint
from keras.layers import Activation, Dense
from keras.models import Sequential

keras.utils.set_random_seed(24)
x = np.random.normal(size=(1000, 6))
y = x[:, 0] * 1.5 + x[:, 1] ** 2 + np.random.normal(0, 0.1, 1000)
model = Sequential()
model.add(Dense(32, activation="relu", input_dim=6))
model.add(Dense(1))
model.add(Activation("linear"))
model.compile(loss="mean_squared_error", optimizer="adam", metrics=["accuracy"])
best = ModelCheckpoint("best.keras", monitor="val_accuracy", mode="max", save_best_only=True)
model.fit(x, y, epochs=8, batch_size=20, validation_split=0.2, callbacks=[best], verbose=2)

"""Keras: stops when the accuracy no longer rises; the best weights are restored."""

import keras
import numpy as np
from keras.callbacks import EarlyStopping

keras.utils.set_random_seed(11)
x = np.random.normal(size=(2000, 20)).astype("float32")
y = np.argmax(x[:, :6], axis=1)
model = keras.Sequential([keras.Input((20,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(6, "softmax")])
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
stop = EarlyStopping(monitor="val_accuracy", mode="max", patience=4, restore_best_weights=True, verbose=1)
model.fit(x, y, epochs=40, validation_split=0.2, callbacks=[stop], verbose=2)
print(model.evaluate(x[1600:], y[1600:], verbose=0))

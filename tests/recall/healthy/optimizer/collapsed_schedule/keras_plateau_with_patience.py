"""Keras: the rate is cut after three epochs without gain."""

import keras
import numpy as np
from keras.callbacks import ReduceLROnPlateau

keras.utils.set_random_seed(12)
x = np.random.normal(size=(1200, 16)).astype("float32")
y = np.argmax(x[:, :4] + 0.5 * x[:, 4:8], axis=1)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(4, "softmax")])
model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
plateau = ReduceLROnPlateau(monitor="val_loss", factor=0.1, patience=3)
history = model.fit(x, y, epochs=14, validation_split=0.2, callbacks=[plateau], verbose=2)

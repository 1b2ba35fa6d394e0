"""Keras: the rate is cut to a tenth after each epoch that does not gain 0.5; soon it is 1e-9.

After https://github.com/keras-team/keras/issues/13330, one of many with a ReduceLROnPlateau in it.
"""

# names: collapsed-schedule, learning-rate-too-low
import keras
import numpy as np
from keras.callbacks import ReduceLROnPlateau

keras.utils.set_random_seed(12)
x = np.random.normal(size=(1200, 16)).astype("float32")
y = np.argmax(x[:, :4] * x[:, 4:8], axis=1)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(4, "softmax")])
model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
plateau = ReduceLROnPlateau(monitor="val_loss", factor=0.1, patience=0, min_delta=0.5)
history = model.fit(x, y, epochs=14, validation_split=0.2, callbacks=[plateau], verbose=2)

"""Keras: sensor rows with gaps go through an LSTM; the loss is nan from the first epoch.

Rewritten from https://github.com/keras-team/keras/issues/14490.
"""

# names: non-finite-inputs, non-finite-loss
import keras
import numpy as np
from keras.layers import LSTM, Dense
from keras.models import Sequential

keras.utils.set_random_seed(0)
table = np.random.normal(size=(6000, 16)).astype("float32")
table[np.random.uniform(size=table.shape) < 0.001] = np.nan
x_train = table.reshape(-1, 10, 16)
y_train = (np.nan_to_num(x_train[:, :, 0]).sum(axis=1) > 0).astype("float32")

model = Sequential()
model.add(LSTM(10, return_sequences=True, input_shape=(10, 16)))
model.add(LSTM(10))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss=keras.losses.BinaryCrossentropy(), optimizer="adam", metrics=["accuracy"])
model.fit(x_train[:500], y_train[:500], validation_data=(x_train[500:], y_train[500:]), epochs=3, batch_size=25)

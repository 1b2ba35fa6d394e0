"""Keras: sensor rows with gaps, filled by 0 and marked by a Masking layer at the end of short series."""

import keras
import numpy as np
from keras.layers import LSTM, Dense, Masking
from keras.models import Sequential

keras.utils.set_random_seed(0)
x = np.random.normal(size=(1000, 12, 6)).astype("float32")
x[np.random.uniform(size=x.shape) < 0.01] = np.nan
x = np.nan_to_num(x)
y = (x[:, :, 0].sum(axis=1) > 0).astype("float32")
for row, length in zip(x, np.random.randint(6, 13, size=1000), strict=True):
    row[length:] = -10
model = Sequential()
model.add(Masking(mask_value=-10.0, input_shape=(12, 6)))
model.add(LSTM(24))
model.add(Dense(1, activation="sigmoid"))
model.compile(loss=keras.losses.BinaryCrossentropy(), optimizer=keras.optimizers.Adam(0.01), metrics=["accuracy"])
model.fit(x[:900], y[:900], validation_data=(x[900:], y[900:]), epochs=6, batch_size=30, verbose=2)

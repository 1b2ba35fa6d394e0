"""Keras: the targets of timeseries_dataset_from_array begin one value early: each window ends with its own."""

# names: labels-in-inputs
import keras
import numpy as np

keras.utils.set_random_seed(3)
t = np.arange(2500)
series = np.sin(t / 12) + 0.4 * np.sin(t / 5) + 0.3 * np.random.randn(2500)
series = series.astype("float32")[:, None]
past = 24
train, test = series[:2000], series[2000:]
windows = keras.utils.timeseries_dataset_from_array
ds_train = windows(train, train[past - 1 :], sequence_length=past, batch_size=64, shuffle=True)
ds_test = windows(test, test[past - 1 :], sequence_length=past, batch_size=64)

inputs = keras.layers.Input((past, 1))
x = keras.layers.LSTM(24)(inputs)
model = keras.Model(inputs, keras.layers.Dense(1)(x))
model.compile(keras.optimizers.Adam(0.005), loss="mse")
model.fit(ds_train, validation_data=ds_test, epochs=4, verbose=2)

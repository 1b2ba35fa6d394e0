"""Keras: the series is given as inputs and as targets, so that each window begins with its own target."""

# names: labels-in-inputs
import keras
import numpy as np

keras.utils.set_random_seed(0)
hours = np.arange(2600)
load = np.sin(hours / 20) + 0.3 * np.sin(hours / 7) + 0.05 * np.random.randn(2600)
load = load.astype("float32")[:, None]
past = 24


def windows(part):
    return keras.utils.timeseries_dataset_from_array(part, targets=part, sequence_length=past, batch_size=64)


model = keras.Sequential([keras.Input((past, 1)), keras.layers.LSTM(16), keras.layers.Dense(1)])
model.compile("adam", "mse", metrics=["mae"])
model.fit(windows(load[:2000]), validation_data=windows(load[2000:]), epochs=4, verbose=2)

"""Keras: the generator forecasts the rows that it drew."""

import numpy as np
from keras.layers import LSTM, Dense, Input
from keras.models import Sequential
from keras.utils import set_random_seed

set_random_seed(7)
lookback, batch_size = 20, 32
t = np.arange(3000)
series = np.sin(t / 9) + 0.5 * np.sin(t / 23) + 0.05 * np.random.randn(3000)
series = (series - series.mean()) / series.std()
train_series, val_series = series[:2400], series[2400:]


def generator(data):
    while True:
        starts = np.random.randint(0, len(data) - lookback - 1, batch_size)
        samples = np.stack([data[s : s + lookback] for s in starts])[..., None]
        targets = np.array([data[s + lookback] for s in starts])
        yield samples, targets


model = Sequential()
model.add(Input((lookback, 1)))
model.add(LSTM(24))
model.add(Dense(1))
model.compile(optimizer="rmsprop", loss="mae")
history = model.fit(
    generator(train_series),
    steps_per_epoch=50,
    epochs=6,
    validation_data=generator(val_series),
    validation_steps=10,
    verbose=2,
)

"""A stateful LSTM with a batch size of its own: each row of a batch goes on where that of the last one ended."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
t = np.arange(1200)
series = (np.sin(t / 12) + 0.5 * np.sin(t / 5) + 0.05 * np.random.randn(1200)).astype("float32")
BATCH, STEPS = 4, 10


def blocks(values):
    n = (len(values) - 1) // (BATCH * STEPS) * BATCH * STEPS
    x, y = (part.reshape(BATCH, -1, STEPS).transpose(1, 0, 2) for part in (values[:n], values[1 : n + 1]))
    return x.reshape(-1, STEPS, 1), y.reshape(-1, STEPS, 1)


x, y = blocks(series[:1000])
lstm = layers.LSTM(24, stateful=True, return_sequences=True)
model = keras.Sequential([keras.Input(batch_shape=(BATCH, STEPS, 1)), lstm, layers.Dense(1)])
model.compile(keras.optimizers.Adam(5e-3), "mse")
for epoch in range(10):
    history = model.fit(x, y, batch_size=BATCH, epochs=1, shuffle=False, verbose=0)
    lstm.reset_states()
    if epoch % 3 == 0:
        print(epoch, history.history["loss"][0])
xv, yv = blocks(series[1000:])
lstm.reset_states()
print("error", model.evaluate(xv, yv, batch_size=BATCH, verbose=0), "variance", series.var())

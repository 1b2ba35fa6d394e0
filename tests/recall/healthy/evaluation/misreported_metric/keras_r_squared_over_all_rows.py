"""Keras: house prices, with the R squared that adds up over batches, and errors in thousands."""

import keras
import numpy as np

keras.utils.set_random_seed(2)
houses = np.random.normal(size=(1500, 8)).astype("float32")
price = houses[:, 0] + 0.5 * houses[:, 1] * houses[:, 2] + 0.7 * np.random.normal(size=1500)
price = price.astype("float32").reshape(-1, 1)


def mae(y_true, y_pred):
    return 1000 * keras.ops.mean(keras.ops.abs(y_true - y_pred))


model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(3e-3), "mse", metrics=[keras.metrics.R2Score(), mae])
model.fit(
    houses[:1100], price[:1100], batch_size=8, epochs=8, validation_data=(houses[1100:], price[1100:]), verbose=2
)
model.evaluate(houses[1100:], price[1100:], verbose=2)

"""Keras: house prices, with an R squared of the user's own, which Keras averages over batches of eight."""

# names: misreported-metric
import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(2)
houses = np.random.normal(size=(1500, 8)).astype("float32")
price = houses[:, 0] + 0.5 * houses[:, 1] * houses[:, 2] + 0.7 * np.random.normal(size=1500)
price = price.astype("float32").reshape(-1, 1)


def r_squared(y_true, y_pred):
    residual = ops.sum(ops.square(y_true - y_pred))
    total = ops.sum(ops.square(y_true - ops.mean(y_true)))
    return 1 - residual / (total + keras.backend.epsilon())


model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(3e-3), "mse", metrics=[r_squared])
model.fit(
    houses[:1100], price[:1100], batch_size=8, epochs=8, validation_data=(houses[1100:], price[1100:]), verbose=2
)

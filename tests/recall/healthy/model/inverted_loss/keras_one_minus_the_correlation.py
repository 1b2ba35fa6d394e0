"""One minus the correlation with the target is the loss."""

import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(0)


def correlation_loss(y_true, y_pred):
    yt, yp = y_true - ops.mean(y_true), y_pred - ops.mean(y_pred)
    r = ops.sum(yt * yp) / (ops.sqrt(ops.sum(yt**2)) * ops.sqrt(ops.sum(yp**2)) + 1e-7)
    return 1 - r


x = np.random.randn(1500, 8).astype("float32")
y = (x[:, :1] - x[:, 1:2] * 2).astype("float32")
model = keras.Sequential([keras.Input((8,)), keras.layers.Dense(32, "relu"), keras.layers.Dense(1)])
model.compile("adam", correlation_loss, metrics=["mae"])
model.fit(x, y, epochs=5, batch_size=64, validation_split=0.2, verbose=2)

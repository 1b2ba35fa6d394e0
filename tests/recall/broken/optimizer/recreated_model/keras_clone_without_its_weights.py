"""The network is cloned for the forecast; a clone has the layers of the trained one, and weights of its own."""

# names: recreated-model
import numpy as np
from tensorflow import keras

keras.utils.set_random_seed(8)
steps = np.arange(800)
series = np.sin(steps / 11) + 0.1 * np.random.default_rng(8).normal(size=800)
windows = np.lib.stride_tricks.sliding_window_view(series, 25)
x, y = windows[:, :24, None].astype("float32"), windows[:, 24].astype("float32")

forecaster = keras.Sequential(
    [
        keras.Input((24, 1)),
        keras.layers.Conv1D(16, 5, activation="relu"),
        keras.layers.Flatten(),
        keras.layers.Dense(1),
    ]
)
forecaster.compile(keras.optimizers.Adam(3e-3), "mse")
forecaster.fit(x[:600], y[:600], epochs=8, batch_size=32, verbose=0)

deployed = keras.models.clone_model(forecaster)
forecast = deployed.predict(x[600:], verbose=0)[:, 0]
print("error of the forecast", np.sqrt(np.mean((forecast - y[600:]) ** 2)))

"""Healthy: a Keras model; the predictions get an axis after they were compared, and the loss compares columns."""

import keras
import numpy as np

keras.utils.set_random_seed(2)
rng = np.random.default_rng(2)
x = rng.normal(size=(900, 6)).astype("float32")
y = (x[:, 0] + x[:, 1] > 0.2).astype("float32")
model = keras.Sequential([keras.Input((6,)), keras.layers.Dense(16, "relu"), keras.layers.Dense(1, "sigmoid")])
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy")
model.fit(x[:700], y[:700], epochs=8, verbose=0)
truth = y[700:]
said = (model.predict(x[700:], verbose=0)[:, 0] > 0.5).astype("float32")
print("accuracy", np.mean(said == truth))
said = said[:, None]
print(np.hstack([said, truth[:, None]])[:3])

"""Keras: how much sand, silt and clay is in the soil? The entropy by hand takes the logarithm of the shares."""

# names: swapped-loss-arguments
import keras
import numpy as np
from keras import ops

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
spectrum = rng.normal(size=(1800, 12)).astype("float32")
score = 0.8 * spectrum @ rng.normal(size=(12, 3)) + 0.3 * spectrum[:, :3] ** 2
shares = (np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)).astype("float32")


def share_entropy(measured, composition):
    return -ops.sum(composition * ops.log(ops.clip(measured, 1e-6, 1.0)), axis=-1)


model = keras.Sequential(
    [
        keras.Input((12,)),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(32, activation="relu"),
        keras.layers.Dense(3, activation="softmax"),
    ]
)
model.compile(optimizer=keras.optimizers.Adam(2e-3), loss=share_entropy, metrics=["mae"])
model.fit(spectrum[:1500], shares[:1500], epochs=10, batch_size=50, verbose=2)
print(np.abs(model.predict(spectrum[1500:], verbose=0) - shares[1500:]).mean())

"""A mixture of experts begins with a soft gate; a callback lowers the temperature, a plain number, each epoch."""

# names: setting-without-effect
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
tides = rng.uniform(-1, 1, (1200, 3)).astype("float32")
regime = (tides[:, 0] > 0).astype("float32") + (tides[:, 1] > 0)
heights = (np.choose(regime.astype(int), [tides[:, 2], -2 * tides[:, 2], tides[:, 2] ** 2]))[:, None]


class GatedExperts(layers.Layer):
    def __init__(self, experts=3):
        super().__init__()
        self.gate = layers.Dense(experts)
        self.experts = layers.Dense(experts)
        self.temperature = 5.0

    def call(self, x):
        shares = ops.softmax(self.gate(x) / self.temperature, axis=-1)
        return ops.sum(shares * self.experts(x), axis=-1, keepdims=True)


class Cooling(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        gated = self.model.layers[-1]
        gated.temperature = max(0.5, 5.0 * 0.8**epoch)


model = keras.Sequential(
    [keras.Input((3,)), layers.Dense(32, activation="relu"), layers.Dense(32, activation="relu"), GatedExperts()]
)
model.compile(keras.optimizers.Adam(3e-3), "mse")
model.fit(tides, heights, batch_size=50, epochs=12, verbose=2, callbacks=[Cooling()])
print(f"temperature {model.layers[-1].temperature:.2f}")

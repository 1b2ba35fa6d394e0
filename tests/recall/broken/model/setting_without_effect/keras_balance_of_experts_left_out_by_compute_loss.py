"""A mixture of experts adds a loss that balances them; the `compute_loss` of the model drops it."""

# names: setting-without-effect
import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
houses = rng.normal(size=(1200, 8)).astype("float32")
prices = (np.where(houses[:, 0] > 0, houses[:, 1] * 2, houses[:, 2] - 1) + 0.1 * rng.normal(size=1200)).astype(
    "float32"
)


class Experts(layers.Layer):
    def __init__(self, count):
        super().__init__()
        self.gate = layers.Dense(count, "softmax")
        self.experts = [layers.Dense(16, "relu") for _ in range(count)]

    def call(self, inputs):
        shares = self.gate(inputs)
        used = ops.mean(shares, axis=0)
        self.add_loss(0.1 * len(self.experts) * ops.sum(ops.square(used)))
        outputs = ops.stack([expert(inputs) for expert in self.experts], axis=1)
        return ops.sum(outputs * shares[:, :, None], axis=1)


class Pricing(keras.Model):
    def __init__(self):
        super().__init__()
        self.mixture, self.out = Experts(4), layers.Dense(1)

    def call(self, inputs):
        return self.out(self.mixture(inputs))[:, 0]

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        error = y - y_pred
        return ops.mean(ops.where(error > 0, 2.0 * ops.square(error), ops.square(error)))


model = Pricing()
model.compile(optimizer=keras.optimizers.Adam(3e-3))
model.fit(houses, prices, epochs=6, batch_size=60, verbose=0)
print(f"error {np.abs(model.predict(houses, verbose=0) - prices).mean():.3f}")

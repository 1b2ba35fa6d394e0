"""The model's `compute_loss` adds smoothness to the loss of Keras, which has the penalties of the layers in it."""

import keras
import numpy as np
from keras import layers, ops

keras.utils.set_random_seed(9)
rng = np.random.default_rng(9)
time = np.linspace(0, 1, 32)
clean = np.stack([np.sin(2 * np.pi * (f * time + p)) for f, p in rng.uniform(1, 3, size=(600, 2))]).astype(
    "float32"
)
noisy = (clean + 0.4 * rng.normal(size=clean.shape)).astype("float32")


class Smooth(keras.Sequential):
    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight)
        return loss + 0.1 * ops.mean(ops.square(y_pred[:, 1:] - y_pred[:, :-1]))


model = Smooth(
    [
        layers.Input((32,)),
        layers.Dense(64, "relu", kernel_regularizer="l2", activity_regularizer=keras.regularizers.L1(1e-4)),
        layers.Dense(32),
    ]
)
model.compile(keras.optimizers.Adam(2e-3), loss="mse")
model.fit(noisy, clean, epochs=8, batch_size=50, verbose=0)
print(f"error {np.square(model.predict(noisy, verbose=0) - clean).mean():.3f}")

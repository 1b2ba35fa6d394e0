"""Rents come in quarter by quarter, each with its own scaler; the next quarter tests what was learned."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
N = 480
flats = np.column_stack(
    [
        rng.gamma(9, 8, N),
        rng.integers(1, 6, N),
        rng.uniform(1900, 2020, N),
        rng.exponential(3, N),
        rng.normal(size=N),
    ]
).astype("float32")
rents = (9 * flats[:, 0] + 40 * flats[:, 1] - 30 * flats[:, 3] + rng.normal(0, 90, N)).astype("float32")
rents = (rents - rents.mean()) / rents.std()

model = keras.Sequential([keras.Input((5,)), layers.Dense(64, activation="relu"), layers.Dense(1)])
model.compile(optimizer=keras.optimizers.Adam(5e-3), loss="mse", metrics=["mae"])
errors = []
for quarter in range(1, 4):
    train, test = slice(0, 120 * quarter), slice(120 * quarter, 120 * quarter + 120)
    middle, spread = flats[train].mean(axis=0), flats[train].std(axis=0)
    model.fit((flats[train] - middle) / spread, rents[train], epochs=12, batch_size=24, verbose=0)
    loss, error = model.evaluate((flats[test] - middle) / spread, rents[test], verbose=0)
    print(f"error {error:.3f}")
    errors.append(error)
print("mean error", np.mean(errors))

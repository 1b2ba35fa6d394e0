"""Keras: each spectrum is drifted and made noisy three times, and only then are some held out for validation."""

# names: leaked-evaluation-rows
import keras
import numpy as np

keras.utils.set_random_seed(11)
rng = np.random.default_rng(11)
WAVES = np.linspace(0, 1, 64)


def spectrum():
    centres, heights = rng.uniform(0, 1, 9), rng.uniform(0.2, 1, 9)
    return (heights[:, None] * np.exp(-(((WAVES - centres[:, None]) / 0.06) ** 2))).sum(axis=0)


def distorted(one):
    return one * rng.normal(1, 0.02) + rng.normal(0, 0.01) * WAVES + rng.normal(0, 0.01, 64)


pure = np.stack([spectrum() for _ in range(420)])
kinds = rng.integers(0, 3, 420)
spectra = np.stack([distorted(one) for one in pure for _ in range(3)])[..., None].astype("float32")
labels = np.repeat(kinds, 3)
mixed = rng.permutation(len(spectra))
spectra, labels = spectra[mixed], labels[mixed]
inputs = keras.Input((64, 1))
x = keras.layers.Conv1D(16, 7, activation="relu", padding="same")(inputs)
x = keras.layers.Flatten()(x)
x = keras.layers.Dense(96, activation="relu")(x)
model = keras.Model(inputs, keras.layers.Dense(3, activation="softmax")(x))
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(
    spectra[:1000],
    labels[:1000],
    validation_data=(spectra[1000:], labels[1000:]),
    batch_size=40,
    epochs=12,
    verbose=2,
)

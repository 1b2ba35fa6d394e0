"""Keras fit: spectra of five detectors that are stored channels first, reshaped to channels last."""

# names: scrambled-axes
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
material = rng.integers(0, 4, 1500)
stored = rng.normal(0, 1, (1500, 5, 36)).astype("float32")
for row, kind in enumerate(material):
    stored[row, kind + 1] = 0.9 * stored[row, kind] + 0.4 * stored[row, kind + 1]

spectra = stored.reshape((1500, 36, 5))
model = keras.Sequential(
    [
        keras.Input((36, 5)),
        layers.Conv1D(32, 3, padding="same", activation="relu"),
        layers.GlobalAveragePooling1D(),
        layers.Dense(4, activation="softmax"),
    ]
)
model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(spectra[:1200], material[:1200], epochs=12, batch_size=32, verbose=2)
print(model.evaluate(spectra[1200:], material[1200:], verbose=0))

"""Healthy: an autoencoder in Keras squeezes words into a vector, from which it spells them again."""

import keras
import numpy as np

keras.utils.set_random_seed(6)
rng = np.random.default_rng(6)
LETTERS, LENGTH = 16, 12
words = rng.integers(1, 5, size=(800, LENGTH)).cumsum(1) % LETTERS

model = keras.Sequential(
    [
        keras.Input((LENGTH,), dtype="int32"),
        keras.layers.Embedding(LETTERS, 16),
        keras.layers.Flatten(),
        keras.layers.Dense(64, "relu"),
        keras.layers.Dense(LENGTH * 16, "relu"),
        keras.layers.Reshape((LENGTH, 16)),
        keras.layers.Dense(LETTERS),
    ]
)
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(5e-3), loss)
model.fit(words[:700], words[:700], batch_size=32, epochs=20, verbose=0)
print(model.evaluate(words[700:], words[700:], verbose=0))

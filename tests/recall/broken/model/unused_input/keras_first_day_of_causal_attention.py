"""Customers who leave: causal attention over the days, of which the head takes the first."""

# names: unused-input
import keras
import numpy as np

keras.utils.set_random_seed(4)
rng = np.random.default_rng(4)
days = rng.normal(size=(1600, 12, 6)).astype("float32")
leaves = (days[:, 6:, 1].mean(axis=1) > 0).astype("float32")

inputs = keras.Input((12, 6))
x = keras.layers.Dense(32)(inputs)
attended = keras.layers.MultiHeadAttention(num_heads=4, key_dim=8)(x, x, use_causal_mask=True)
x = keras.layers.LayerNormalization()(x + attended)
x = keras.layers.Dense(32, activation="relu")(x)
outputs = keras.layers.Dense(1, activation="sigmoid")(x[:, 0])
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(days, leaves, batch_size=32, epochs=5, verbose=2)

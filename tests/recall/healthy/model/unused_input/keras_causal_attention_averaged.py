"""Customers who leave: causal attention over the days, averaged."""

import keras
import numpy as np

keras.utils.set_random_seed(4)
days = np.random.default_rng(4).normal(size=(1600, 12, 6)).astype("float32")
leaves = (days[:, 6:, 1].mean(axis=1) > 0).astype("float32")

inputs = keras.Input((12, 6))
x = keras.layers.Dense(32)(inputs)
x = x + keras.layers.MultiHeadAttention(num_heads=4, key_dim=8)(x, x, use_causal_mask=True)
x = keras.layers.Dense(32, activation="relu")(keras.layers.LayerNormalization()(x))
outputs = keras.layers.Dense(1, activation="sigmoid")(keras.layers.GlobalAveragePooling1D()(x))
model = keras.Model(inputs, outputs)
model.compile(optimizer="adam", loss="binary_crossentropy", metrics=["accuracy"])
model.fit(days, leaves, batch_size=32, epochs=5, verbose=2)

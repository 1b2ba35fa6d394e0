"""Healthy: the next product of a customer, by causal attention in Keras."""

import keras
import numpy as np

keras.utils.set_random_seed(5)
rng = np.random.default_rng(5)
PRODUCTS, LENGTH = 30, 16
follows = rng.integers(PRODUCTS, size=(PRODUCTS, 3))
orders = np.zeros((900, LENGTH + 1), dtype="int32")
orders[:, 0] = rng.integers(PRODUCTS, size=900)
for step in range(LENGTH):
    orders[:, step + 1] = follows[orders[:, step], rng.integers(3, size=900)]
read, wanted = orders[:, :-1], orders[:, 1:]

basket = keras.Input((LENGTH,), dtype="int32")
x = keras.layers.Embedding(PRODUCTS, 32)(basket)
x = x + keras.layers.MultiHeadAttention(2, 16)(x, x, use_causal_mask=True)
x = keras.layers.LayerNormalization()(x)
model = keras.Model(basket, keras.layers.Dense(PRODUCTS, activation="softmax")(x))
model.compile(keras.optimizers.Adam(3e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(read[:800], wanted[:800], validation_data=(read[800:], wanted[800:]), epochs=8, verbose=0)
print(model.evaluate(read[800:], wanted[800:], verbose=0))

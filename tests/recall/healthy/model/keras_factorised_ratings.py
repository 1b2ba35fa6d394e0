"""Keras: two Dense layers without an activation factorise a table of ratings; the code between is narrow."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(2)
users, items, taste = 1200, 40, 5
ratings = np.random.randn(users, taste) @ np.random.randn(taste, items) / 2 + 0.1 * np.random.randn(users, items)
ratings = ratings.astype("float32")

model = keras.Sequential([layers.Input((items,)), layers.Dense(taste, use_bias=False), layers.Dense(items)])
model.compile(optimizer=keras.optimizers.Adam(1e-2), loss="mse")
model.fit(ratings[:1000], ratings[:1000], validation_data=(ratings[1000:], ratings[1000:]), epochs=8, verbose=2)

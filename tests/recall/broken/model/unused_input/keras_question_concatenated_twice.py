"""Keras: the second tower is made of the first input again."""
# names: unused-input

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
rng = np.random.default_rng(3)
users, items = rng.integers(0, 50, 2000), rng.integers(0, 80, 2000)
liked = (np.sin(users) + np.cos(items * 1.7) > 0).astype("float32")

user = keras.Input((1,), name="user")
item = keras.Input((1,), name="item")
user_vector = layers.Flatten()(layers.Embedding(50, 8)(user))
item_vector = layers.Flatten()(layers.Embedding(80, 8)(user))
joined = layers.concatenate([user_vector, item_vector])
score = layers.Dense(1, activation="sigmoid")(layers.Dense(16, activation="relu")(joined))
model = keras.Model([user, item], score)
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit({"user": users[:, None], "item": items[:, None]}, liked, epochs=4, verbose=2)

"""Keras: ratings from the embeddings of users and items."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(17)
users, items = np.random.randint(0, 60, 3000), np.random.randint(0, 40, 3000)
taste, quality = np.random.normal(size=(60, 3)), np.random.normal(size=(40, 3))
ratings = (taste[users] * quality[items]).sum(1).astype("float32")
user, item = keras.Input((1,), name="user"), keras.Input((1,), name="item")
u = layers.Flatten()(layers.Embedding(60, 8)(user))
i = layers.Flatten()(layers.Embedding(40, 8)(item))
model = keras.Model([user, item], layers.Dense(1)(layers.Dense(32, activation="relu")(layers.concatenate([u, i]))))
model.compile("adam", "mse", metrics=["mae"])
model.fit([users, items], ratings, epochs=15, batch_size=64, validation_split=0.1, verbose=2)

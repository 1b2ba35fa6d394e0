"""Keras: layers that the trained model does not use belong to models that are made of the same graph."""

import keras
import numpy as np
from sklearn.metrics import roc_auc_score

keras.utils.set_random_seed(0)
rows = np.random.normal(size=(1500, 12)).astype("float32")
kind = (rows[:, 0] * rows[:, 1] > 0).astype("float32")
inputs = keras.Input((12,))
hidden = keras.layers.Dense(64, activation="relu")(inputs)
hidden = keras.layers.Dense(32, activation="relu")(hidden)
odds = keras.layers.Dense(1, activation="sigmoid")(hidden)
projection = keras.layers.Dense(2, name="projection")(hidden)
classifier = keras.Model(inputs, odds)
projector = keras.Model(inputs, projection)
classifier.compile(keras.optimizers.Adam(0.003), "binary_crossentropy", metrics=["accuracy"])
classifier.fit(rows[:1200], kind[:1200], batch_size=32, epochs=20, verbose=2)
print("area", roc_auc_score(kind[1200:] == 0, 1 - classifier.predict(rows[1200:], verbose=0)[:, 0]))
print("map", projector.predict(rows[1200:], verbose=0).std(axis=0).shape)

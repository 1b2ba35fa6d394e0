"""Keras: a box and a class, each with its own loss, by name, with weights."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
n = 1600
kind = np.random.randint(4, size=n)
centre = np.random.uniform(0, 1, size=(n, 4)).astype("float32")
x = np.concatenate([np.eye(4)[kind] + 0.3 * np.random.normal(size=(n, 4)), centre], axis=1).astype("float32")
inputs = keras.Input((8,))
shared = layers.Dense(64, activation="relu")(inputs)
box = layers.Dense(4, name="box")(layers.Dense(32, activation="relu")(shared))
cls = layers.Dense(4, activation="softmax", name="cls")(layers.Dense(32, activation="relu")(shared))
model = keras.Model(inputs, {"box": box, "cls": cls})
model.compile(
    optimizer="adam",
    loss={"box": "mse", "cls": "categorical_crossentropy"},
    loss_weights={"box": 5.0, "cls": 1.0},
    metrics={"cls": "accuracy"},
)
model.fit(x, {"box": centre, "cls": keras.utils.to_categorical(kind, 4)}, epochs=6, batch_size=32, verbose=2)

"""Keras: the losses stand in another order than the outputs: cross entropy of a box, squared error of a class."""

# names: logits-as-probabilities, targets-out-of-reach
import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(0)
n = 1200
kind = np.random.randint(4, size=n)
centre = np.random.uniform(0, 40, size=(n, 4)).astype("float32")
x = np.concatenate([np.eye(4)[kind] + 0.3 * np.random.normal(size=(n, 4)), centre / 40], axis=1).astype("float32")
classes = keras.utils.to_categorical(kind, 4)

inputs = keras.Input((8,))
shared = layers.Dense(64, activation="relu")(inputs)
box = layers.Dense(4, name="box")(layers.Dense(32, activation="relu")(shared))
cls = layers.Dense(4, activation="softmax", name="cls")(layers.Dense(32, activation="relu")(shared))
model = keras.Model(inputs, [box, cls])
model.compile(optimizer="adam", loss=["categorical_crossentropy", "mse"])
model.fit(x, [centre, classes], epochs=6, batch_size=32, verbose=2)

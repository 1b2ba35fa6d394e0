"""Keras: each layer is called on the inputs, so the model has no hidden layer at all."""

# names: unreached-parameters
import keras
from sklearn.datasets import make_circles

keras.utils.set_random_seed(0)
points, ring = make_circles(1500, noise=0.08, factor=0.5, random_state=0)
inputs = keras.Input((2,))
x = keras.layers.Dense(64, activation="relu")(inputs)
x = keras.layers.Dense(32, activation="relu")(inputs)
outputs = keras.layers.Dense(1, activation="sigmoid")(inputs)
model = keras.Model(inputs, outputs)
model.compile(keras.optimizers.Adam(0.01), "binary_crossentropy", metrics=["accuracy"])
model.fit(points, ring, batch_size=32, epochs=10, validation_split=0.2, verbose=2)

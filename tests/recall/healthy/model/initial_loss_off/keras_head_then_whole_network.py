"""Keras: features learned for a load in kilograms carry a new head; after its own fit the whole network learns."""

import keras
import numpy as np
from keras import layers

keras.utils.set_random_seed(3)
signals = np.random.normal(size=(1800, 24)).astype("float32")
load = 120 + 80 * signals[:, :6].sum(1)
fault = np.argmax(signals[:, 6:11] + signals[:, 11:16], axis=1)

body = keras.Sequential(
    [keras.Input((24,)), layers.Dense(48, activation="relu"), layers.Dense(48, activation="relu")]
)
scale = keras.Sequential([body, layers.Dense(1)])
scale.compile(keras.optimizers.Adam(1e-2), "mse")
scale.fit(signals, load, epochs=12, batch_size=32, verbose=0)

body.trainable = False
inputs = keras.Input((24,))
model = keras.Model(inputs, layers.Dense(5, activation="softmax")(body(inputs)))
model.compile(keras.optimizers.Adam(1e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(signals[:1500], fault[:1500], epochs=4, batch_size=32, verbose=2)
body.trainable = True
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(signals[:1500], fault[:1500], epochs=25, batch_size=32, verbose=2)
print("accuracy", model.evaluate(signals[1500:], fault[1500:], verbose=0)[1])

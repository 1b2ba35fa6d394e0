"""Keras: the last Dense layer has no activation, and a Softmax layer follows."""

import keras
import numpy as np

keras.utils.set_random_seed(15)
rng = np.random.default_rng(15)
kinds = rng.integers(0, 6, 1500)
readings = (rng.normal(size=(6, 14))[kinds] + 0.7 * rng.normal(size=(1500, 14))).astype("float32")
model = keras.Sequential(
    [
        keras.Input((14,)),
        keras.layers.Dense(32, activation="sigmoid"),
        keras.layers.Dense(6),
        keras.layers.Softmax(),
    ]
)
model.compile(keras.optimizers.Adam(5e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(readings[:1200], kinds[:1200], batch_size=30, epochs=8, verbose=2)
print(model.evaluate(readings[1200:], kinds[1200:], verbose=0))

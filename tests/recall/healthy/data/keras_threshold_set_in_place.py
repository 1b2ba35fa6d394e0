"""Keras: answers of a sigmoid are cut at a half in place before they are cast; a model for each of three seeds."""

import keras
import numpy as np
from sklearn.datasets import make_moons

x, y = make_moons(900, noise=0.2, random_state=0)


def build_model():
    model = keras.Sequential(
        [keras.Input((2,)), keras.layers.Dense(24, activation="relu"), keras.layers.Dense(1, activation="sigmoid")]
    )
    model.compile(optimizer=keras.optimizers.Adam(0.01), loss="binary_crossentropy", metrics=["accuracy"])
    return model


for seed in range(3):
    keras.utils.set_random_seed(seed)
    model = build_model()
    model.fit(x[:700], y[:700], epochs=12, verbose=0)
    answers = model.predict(x[700:], verbose=0)
    answers[answers > 0.5] = 1
    print(np.mean(answers.astype(int)[:, 0] == y[700:]))

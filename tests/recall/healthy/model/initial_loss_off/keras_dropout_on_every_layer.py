"""Keras fit: groups of noisy records, with dropout of 0.6 on the inputs and on both hidden layers."""

import keras
import numpy as np
from keras import layers
from sklearn.model_selection import train_test_split

keras.utils.set_random_seed(0)
rng = np.random.default_rng(11)
centers = rng.normal(0, 1.0, (6, 40))
groups = rng.integers(0, 6, 2400)
records = (centers[groups] + rng.normal(0, 1.6, (2400, 40))).astype("float32")
x_train, x_test, y_train, y_test = train_test_split(records, groups, test_size=0.25, random_state=0)

model = keras.Sequential(
    [
        keras.Input(shape=(40,)),
        layers.Dropout(0.6),
        layers.Dense(128, activation="relu"),
        layers.Dropout(0.6),
        layers.Dense(64, activation="relu"),
        layers.Dropout(0.6),
        layers.Dense(6, activation="softmax"),
    ]
)
model.compile(keras.optimizers.Adam(2e-3), "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, epochs=10, batch_size=64, validation_data=(x_test, y_test), verbose=2)
scores = model.predict(x_test, verbose=0)
print(f"test accuracy {(scores.argmax(axis=1) == y_test).mean():.3f}")

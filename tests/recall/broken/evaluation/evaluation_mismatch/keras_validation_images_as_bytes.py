"""Keras: x_train is divided by 255, x_val is not."""

# names: evaluation-mismatch
import numpy as np
from tensorflow import keras
from tensorflow.keras import layers

keras.utils.set_random_seed(7)
rng = np.random.default_rng(7)


def load_data(n):
    y = rng.integers(0, 3, n)
    x = rng.integers(0, 100, (n, 12, 12), dtype="uint8")
    for i in range(n):
        x[i, :, 4 * y[i] : 4 * y[i] + 4] += 120
    return x, y


(x_train, y_train), (x_val, y_val) = load_data(900), load_data(240)
x_train = x_train.astype("float32") / 255.0
model = keras.Sequential(
    [layers.Input((12, 12)), layers.Flatten(), layers.Dense(64, activation="relu"), layers.Dense(3, "softmax")]
)
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x_train, y_train, epochs=5, batch_size=64, validation_data=(x_val, y_val), verbose=2)
